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
  }
}

// What was done is said for ten seconds, longer while it is pointed at or focused.
function fade(toast) {
  setTimeout(() => (toast.matches(":hover, :focus-within") ? fade(toast) : toast.remove()), TOAST_MS);
}

document.addEventListener("keydown", keys);
document.querySelectorAll(".toast").forEach(fade);
if (main?.dataset.live) new Live(main.dataset.live, main.dataset.liveQuery);
