"""Who starts the processes that become slots: Spark, or plain processes of this machine."""
