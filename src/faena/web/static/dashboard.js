// What a page can do beyond its links and forms: figures that stay up to date, and keys.
// Without this file everything works; the page is then as old as its last load.

const root = document.body.dataset.root;
const main = document.getElementById("main");
const light = document.querySelector(".live");

const POLL_MS = 5000;
const TRY_AGAIN_MS = 60000;
const TOAST_MS = 10000;

function show(state) {
  if (!light) return;
  light.hidden = false;
  light.dataset.state = state;
  light.textContent = light.dataset[`words${state[0].toUpperCase()}${state.slice(1)}`] ?? "";
}

function update(figures) {
  for (const [name, text] of Object.entries(figures)) {
    for (const place of document.querySelectorAll(`[data-figure="${CSS.escape(name)}"]`)) {
      if (place.textContent !== text) place.textContent = text;
    }
    for (const place of document.querySelectorAll(`[data-if="${CSS.escape(name)}"]`)) {
      place.hidden = text === "";
    }
  }
}

// Listens to the server; where that fails it asks every few seconds, and tries to listen again later.
class Live {
  constructor(page, query) {
    const words = new URLSearchParams(query);
    words.set("lang", document.documentElement.lang); // figures in the language of the page
    this.query = `${page}?${words}`;
    this.failures = 0;
    this.listen();
    document.addEventListener("visibilitychange", () => this.rest());
    addEventListener("pagehide", () => this.stop());
  }

  listen() {
    this.stop();
    this.source = new EventSource(`${root}/live/${this.query}`);
    this.source.onopen = () => { this.failures = 0; show("live"); };
    this.source.onmessage = (message) => update(JSON.parse(message.data));
    this.source.addEventListener("lost", () => show("lost"));
    this.source.addEventListener("found", () => show("live"));
    this.source.onerror = () => {
      this.failures += 1;
      if (this.failures >= 2 || this.source.readyState === EventSource.CLOSED) this.poll();
    };
  }

  async poll() {
    this.stop();
    const until = Date.now() + TRY_AGAIN_MS;
    const ask = async () => {
      try {
        const answer = await fetch(`${root}/now/${this.query}`, { headers: { accept: "application/json" } });
        if (!answer.ok) throw new Error(String(answer.status));
        update(await answer.json());
        show("polling");
      } catch {
        show("lost");
      }
      if (Date.now() > until) this.listen();
      else this.timer = setTimeout(ask, POLL_MS);
    };
    await ask();
  }

  // A tab that nobody sees costs nothing.
  rest() {
    if (document.hidden) this.stop();
    else this.listen();
  }

  stop() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
  }
}

// Choosing rows: one, all of the page, and how many that are.
class Choosing {
  constructor(form) {
    this.form = form;
    form.addEventListener("change", (event) => this.changed(event.target));
    form.addEventListener("submit", (event) => this.check(event));
    this.count();
  }

  get boxes() {
    return [...this.form.querySelectorAll('input[name="job"]')];
  }

  changed(box) {
    if (box.matches("[data-choose-all]")) for (const one of this.boxes) one.checked = box.checked;
    this.count();
  }

  // Nothing is asked of the server while nothing is chosen.
  check(event) {
    const isAll = this.form.querySelector('input[name="all"]')?.checked;
    if (!isAll && !this.boxes.some((one) => one.checked)) event.preventDefault();
  }

  count() {
    const words = this.form.querySelector("[data-chosen]");
    if (!words) return;
    const number = this.boxes.filter((one) => one.checked).length;
    const kind = number === 0 ? "None" : number === 1 ? "One" : "Many";
    words.textContent = words.dataset[`words${kind}`].replace("#", String(number));
    for (const one of this.boxes) one.closest("tr").ariaSelected = one.checked ? "true" : null;
    const all = this.form.querySelector("[data-choose-all]");
    if (all) all.checked = number > 0 && number === this.boxes.length;
  }

  toggle(row) {
    const box = row?.querySelector('input[name="job"]');
    if (!box) return;
    box.checked = !box.checked;
    this.count();
  }
}

// A search that has not come to its end goes on until its page is full, or somebody stops it.
class Hunt {
  constructor(form) {
    this.form = form;
    this.isStopped = false;
    this.go();
  }

  get place() {
    return this.form.querySelector("#found");
  }

  async go() {
    while (!this.isStopped && this.place?.dataset.further) {
      this.offerStop();
      let page;
      try {
        const answer = await fetch(this.place.dataset.further);
        if (!answer.ok) return;
        page = new DOMParser().parseFromString(await answer.text(), "text/html");
      } catch {
        return;
      }
      if (!this.isStopped) this.add(page);
    }
    this.form.querySelector("[data-stop]")?.setAttribute("hidden", "");
  }

  offerStop() {
    const button = this.form.querySelector("[data-stop]");
    if (!button) return;
    button.hidden = false;
    button.onclick = () => {
      this.isStopped = true;
      button.hidden = true;
    };
  }

  // What was found so far stays where it is; the rest of the page is that of the last answer.
  add(page) {
    const next = page.getElementById("found");
    const found = this.place.querySelector("tbody")?.children ?? [];
    if (found.length) {
      const body = next.querySelector("tbody");
      const table = this.place.querySelector("table");
      if (body) table.tBodies[0].append(...body.children);
      next.querySelector(".state-box")?.remove();
      const old = next.querySelector("table");
      if (old) old.replaceWith(table);
      else next.querySelector("[data-more]")?.before(table) ?? next.append(table);
    } else if (page.querySelector(".bulk") && !this.form.querySelector(".bulk")) {
      this.form.append(page.querySelector(".bulk"));
    }
    const number = next.querySelectorAll("tbody tr").length;
    if (number >= 50) delete next.dataset.further;
    this.place.replaceWith(next);
    if (page.querySelector(".page-head p") && !number) {
      main.querySelector(".page-head p").textContent = page.querySelector(".page-head p").textContent;
    }
    choosing?.count();
  }
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector(".find input")?.focus();
  } else if (event.key === "j" || event.key === "k") {
    const links = [...main.querySelectorAll("table .name")];
    const at = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
  } else if (event.key === "x") {
    choosing?.toggle(document.activeElement.closest("tr"));
  }
}

// What was done is said for ten seconds, longer while it is pointed at or focused.
function fade(toast) {
  setTimeout(() => (toast.matches(":hover, :focus-within") ? fade(toast) : toast.remove()), TOAST_MS);
}

const list = main?.querySelector("form[data-choosing]");
const choosing = list ? new Choosing(list) : null;
if (list?.querySelector("#found")) new Hunt(list);

// A slider says where it stands.
document.addEventListener("input", (event) => {
  const place = event.target.matches("[data-shown]") && document.querySelector(`output[for="${CSS.escape(event.target.id)}"]`);
  if (place) place.textContent = event.target.value;
});

document.addEventListener("keydown", keys);
document.querySelectorAll(".toast").forEach(fade);
if (main?.dataset.live) new Live(main.dataset.live, main.dataset.liveQuery);
