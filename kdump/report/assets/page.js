"use strict";
(() => {
  const FIRST = 12;  // rows that a table shows at first
  const PAPER = 30;  // and on paper
  const STEP = 200;  // and then more of them
  const collator = new Intl.Collator("en", { numeric: true });
  const status = document.getElementById("status");

  function value(row, column) {
    const cell = row.cells[column];
    if (!cell.classList.contains("n")) return cell.textContent;
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  }

  function compare(one, other) {
    if (one === null || other === null) return (one === null) - (other === null);
    return typeof one === "number" ? one - other : collator.compare(one, other);
  }

  for (const table of document.querySelectorAll("main table")) {
    const body = table.tBodies[0];
    const details = table.closest("details");
    const pages = details.querySelector(".pages");
    const inputs = [...details.querySelectorAll("input")];
    const [filter, from, until] = ["search", "from", "until"].map((name) => details.querySelector(name === "search" ? "input[type=search]" : `input.${name}`));
    let rows = [...body.rows], found = rows, shown = FIRST;

    function show() {
      const visible = new Set(found.slice(0, shown));
      for (const row of rows) row.classList.toggle("out", !visible.has(row));
      pages.hidden = found.length <= shown;
      pages.textContent = "";
      if (!pages.hidden) {
        pages.append(`${shown} of ${found.length.toLocaleString("en")} rows are shown.`);
        for (const [text, count] of [["Show more", shown + STEP], ["Show all", found.length]]) {
          const button = document.createElement("button");
          button.type = "button";
          button.textContent = text;
          button.addEventListener("click", () => { shown = count; show(); });
          pages.append(button);
        }
      }
    }

    function sort(column, head) {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [value(row, column), row]);
      keyed.sort((a, b) => (a[0] === null || b[0] === null ? compare(a[0], b[0]) : (down ? -1 : 1) * compare(a[0], b[0])));
      rows = keyed.map(([, row]) => row);
      const kept = new Set(found);
      found = rows.filter((row) => kept.has(row));
      body.append(...rows);
      show();
      status.textContent = `Sorted by ${head.textContent}, ${down ? "descending" : "ascending"}`;
    }

    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(column, head));
    });

    for (const input of inputs) {
      input.parentElement.hidden = false;
      input.addEventListener("input", () => {
        const wanted = filter.value.toLowerCase();
        const isWithin = (time) => (!from || !from.value || time >= from.value.trim()) && (!until || !until.value || time < until.value.trim());
        found = rows.filter((row) => row.textContent.toLowerCase().includes(wanted) && isWithin(row.cells[0].textContent));
        shown = FIRST;
        show();
        status.textContent = `${found.length} rows match`;
      });
    }
    if (rows.length > FIRST) show();
    window.addEventListener("beforeprint", () => { for (const row of rows) row.classList.add("out"); for (const row of found.slice(0, PAPER)) row.classList.remove("out"); });
    window.addEventListener("afterprint", show);
  }

  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("svg [role='graphics-symbol'][aria-roledescription][aria-label]");
    const isMark = mark && !/axis|legend|title/.test(mark.getAttribute("aria-roledescription"));
    tip.hidden = !isMark;
    if (isMark) {
      tip.textContent = mark.getAttribute("aria-label");
      tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
    }
  });

  const copy = document.getElementById("copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.querySelector("#ticket pre").textContent);
      status.textContent = "Copied";
    });
  }

  const save = document.getElementById("save");
  if ("DecompressionStream" in window) {
    save.hidden = false;
    save.addEventListener("click", async () => {
      const packed = Uint8Array.from(atob(document.getElementById("kdump-report").textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await new Response(stream).blob());
      link.download = "kdump-report.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
