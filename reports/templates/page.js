"use strict";
// Two conveniences; everything they show is on the page without them.
(() => {
  const rows = [...document.querySelectorAll("tr[data-release]")];
  const numbers = (text) => {
    const plain = /^(\d+(?:\.\d+)*)$/.exec(text);
    return plain && plain[1].split(".").map(Number);
  };
  const compare = (a, b) => {
    for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
      const difference = (a[i] || 0) - (b[i] || 0);
      if (difference) return difference;
    }
    return 0;
  };
  const said = (row) =>
    [...row.querySelectorAll(".verdict")]
      .map((v) => {
        const word = [...v.childNodes].filter((n) => !n.matches?.(".detail")).map((n) => n.textContent);
        return word.join("").trim() + (v.dataset.detail ? ` (${v.dataset.detail})` : "");
      })
      .join("; ") || "no statement";

  // What helps on it without another release, where something was tried.
  const helps = (row) => {
    if (row.dataset.helps === undefined) return "";
    const ways = row.dataset.helps
      .split(" ")
      .map((code) => document.querySelector(`[data-way="${CSS.escape(code)}"]`)?.textContent.trim())
      .filter(Boolean);
    if (!ways.length) return "Without another release: nothing that was tried helps in every core way of use. ";
    return `Without another release, tried on it and right: ${ways.join("; or: ")}. `;
  };

  // What the text names: a bare version, or the line for transformers in `pip freeze`.
  const wanted = (text) => {
    for (const line of text.split("\n")) {
      const pinned = /^\s*transformers(?:\[[^\]]*\])?\s*={2,3}\s*([^\s;#]+)/i.exec(line);
      if (pinned) return pinned[1].replace(/\+.*$/, "");
      const source = /^\s*transformers\s*@\s*\S*@([0-9a-f]{7,40})\b/i.exec(line);
      if (source) return source[1];
      const shown = /^\s*version:\s*(\S+)/i.exec(line);
      if (shown && /^\s*name:\s*transformers\s*$/im.test(text)) return shown[1];
    }
    const bare = text.trim().replace(/^v(?=\d)/, "");
    return /\s/.test(bare) ? "" : bare;
  };

  const find = (name) =>
    rows.find((row) => row.dataset.release === name) ||
    rows.find((row) => {
      const [a, b] = [numbers(row.dataset.release), numbers(name)];
      return a && b && compare(a, b) === 0;
    }) ||
    rows.find((row) => row.dataset.commit && name.length >= 7 && row.dataset.commit.startsWith(name.slice(0, 9)));

  const unknown = (name) => {
    const mine = numbers(name);
    if (!mine) return `${name} was not tested. Only released versions can be placed between tested ones.`;
    const published = rows
      .map((row) => [numbers(row.dataset.release), row])
      .filter(([version]) => version)
      .sort(([a], [b]) => compare(a, b));
    const older = published.filter(([version]) => compare(version, mine) < 0).pop();
    const newer = published.find(([version]) => compare(version, mine) > 0);
    const parts = [];
    if (older) parts.push(`${older[1].dataset.release} before it: ${said(older[1])}`);
    if (newer) parts.push(`${newer[1].dataset.release} after it: ${said(newer[1])}`);
    return `${name} was not tested, so nothing is known about it. Tested neighbours: ${parts.join(" — ")}.`;
  };

  const lookup = document.getElementById("lookup");
  if (lookup) {
    const field = lookup.querySelector("textarea");
    const output = lookup.querySelector("output");
    lookup.hidden = false;
    const show = () => {
      output.textContent = "";
      if (!field.value.trim()) return;
      const name = wanted(field.value);
      if (!name) {
        output.textContent = "No line for transformers in this text.";
        return;
      }
      const row = find(name);
      if (!row) {
        output.textContent = unknown(name);
        return;
      }
      const link = document.createElement("a");
      link.href = row.querySelector("th a").getAttribute("href");
      link.textContent = "Evidence";
      output.append(`transformers ${row.dataset.release}: ${said(row)}. ${helps(row)}`, link);
    };
    field.addEventListener("input", show);
    lookup.addEventListener("submit", (event) => {
      event.preventDefault();
      show();
    });
    show();
  }

  const filters = document.getElementById("filters");
  if (filters) {
    filters.hidden = false;
    const table = document.querySelector("table.grid");
    const heads = [...table.tHead.rows[0].cells];
    const counter = filters.querySelector("output");
    const apply = () => {
      const text = filters.elements.release.value.trim().toLowerCase();
      const verdict = filters.elements.verdict.value;
      const words = filters.elements.case.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits =
          row.dataset.release.toLowerCase().startsWith(text) &&
          (!verdict || row.querySelector(`.verdict[data-verdict="${verdict}"]`));
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      heads.forEach((head, index) => {
        if (!head.dataset.words) return;
        const hide = !words.every((word) => head.dataset.words.includes(word));
        if (head.hidden === hide) return;
        head.hidden = hide;
        for (const row of rows) row.cells[index].hidden = hide;
      });
      counter.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} releases shown`;
    };
    filters.addEventListener("input", apply);
    filters.addEventListener("change", apply);
    filters.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // Evidence that a link points to is unfolded.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && (target.matches("details") ? target : target.querySelector("details"));
    if (details) details.open = true;
  };
  window.addEventListener("hashchange", unfold);
  unfold();
})();
