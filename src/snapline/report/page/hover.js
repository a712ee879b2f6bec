// Shows what a mark stands for beside the pointer, at once: a browser takes a second to show a title by itself.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true; tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  let title = null, words = "";
  const leave = () => { if (title) title.textContent = words; title = null; tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest(".chart .mark");
    const found = mark && mark.querySelector("title");
    if (found !== title) {
      leave();
      if (!found) return;
      title = found; words = found.textContent; found.textContent = "";
      tip.textContent = words; tip.hidden = !words;
    }
    if (!title) return;
    const box = tip.getBoundingClientRect(), gap = 14;
    const below = event.clientY + gap + box.height < innerHeight;
    tip.style.left = Math.max(8, Math.min(event.clientX + gap, innerWidth - box.width - 8)) + "px";
    tip.style.top = (below ? event.clientY + gap : event.clientY - gap - box.height) + "px";
  });
})();
