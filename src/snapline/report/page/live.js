// Replaces the parts of the page that have changed, as the server tells them; what is open stays open.
(() => {
  const status = document.querySelector(".live");
  const source = new EventSource("events?since=" + VERSION);
  const opened = (part) => [...part.querySelectorAll("details")].map((each) => each.open);
  const replace = (part, html) => {
    const before = opened(part);
    const scrolled = [...part.querySelectorAll(".scroll, .spacetime")].map((each) => [each.scrollLeft, each.scrollTop]);
    part.innerHTML = html;
    part.querySelectorAll("details").forEach((each, at) => { each.open = before[at] || false; });
    part.querySelectorAll(".scroll, .spacetime").forEach((each, at) => {
      if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at];
    });
  };
  source.onmessage = (event) => {
    for (const [name, html] of Object.entries(JSON.parse(event.data))) {
      const part = document.getElementById("part-" + name);
      if (part) replace(part, html);
      else if (html) return location.reload();  // the page was loaded when this part could not be made
    }
    status.textContent = "live";
  };
  source.addEventListener("end", () => { source.close(); status.textContent = "the server has ended; this is its last page"; });
  source.onerror = () => { if (source.readyState !== 2) status.textContent = "the server does not answer; trying again"; };
})();
