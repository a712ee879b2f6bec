package peer;

/** Somebody registers. */
public class Person {
  public long id;
  public long time;
  public long person;
  public String name;
  public String city;
  public String state;
}
