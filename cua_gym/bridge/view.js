"use strict";

// The page: asks for news and pictures, shows them, and sends what a person does.
// All text of the agent and of the guest goes in as text, never as markup.

const AGAIN_MS = 1000;
const $ = (id) => document.getElementById(id);

// The token stands behind # in the link; it leaves the address bar and stays in this tab.
function takeToken() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token") || "";
}

const token = takeToken();
const me = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

function ask(path, body, more) {
  const headers = { Authorization: `Bearer ${token}`, "X-Viewer": me };
  if (body === undefined) return fetch(path, { headers, cache: "no-store", ...more });
  headers["Content-Type"] = "application/json";
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), ...more });
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// What is known

let state = null;
let toldAt = 0; // when the time left was told, in this computer's milliseconds
let count = 0; // steps shown
let connected = true;
let valid = true; // the token
let shown = null; // the step whose recorded picture is shown; null is live
let newest = null; // the newest live picture, an ImageBitmap
let serial = -1;

// News

async function followNews() {
  while (valid) {
    try {
      const seen = state ? state.version : "";
      const answer = await ask(`/view/steps?after=${count - 1}&seen=${seen}`);
      if (answer.status === 401) {
        valid = false;
      } else if (!answer.ok) {
        throw new Error(`status ${answer.status}`);
      } else {
        const news = await answer.json();
        connected = true;
        news.steps.forEach(addStep);
        learn(news.state);
        continue;
      }
    } catch {
      connected = false;
      lose();
    }
    render();
    await pause(AGAIN_MS);
  }
}

function learn(news) {
  if (state && news.at <= state.at) return;
  const had = state && state.mine;
  state = news;
  toldAt = performance.now();
  if (had && !state.mine) {
    lose();
    if (!state.over && !giving) fail("The machine was given back, since this page was not heard of.");
  }
  if (state.mine && !state.over && !hands.active && !giving) hands.start();
  render();
}

function lose() {
  if (state) state.mine = false;
  queue.length = 0;
  hands.stop();
}

// The picture

const canvas = $("screen");
const brush = canvas.getContext("2d", { alpha: false });

async function followScreen() {
  while (valid) {
    if (document.hidden) {
      await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
      continue;
    }
    try {
      const answer = await ask(`/view/frame?after=${serial}`);
      if (answer.status === 200) {
        const size = answer.headers.get("X-Screen").split(",").map(Number);
        const picture = await createImageBitmap(await answer.blob());
        if (newest) newest.picture.close();
        newest = { picture, size };
        serial = Number(answer.headers.get("X-Serial"));
        if (shown === null) draw(picture, size);
        continue;
      }
      if (answer.status === 204) continue;
      // The machine is gone; what was recorded last is the best there is.
      if (!newest && shown === null && count) await showRecorded(count - 1);
      if (state && state.over) return;
    } catch {
      serial = -1; // the news tell of a lost connection
    }
    await pause(AGAIN_MS);
  }
}

function draw(picture, [width, height]) {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  brush.drawImage(picture, 0, 0, width, height);
}

async function showRecorded(step) {
  shown = step;
  render();
  try {
    const answer = await ask(`/view/frames/${step}`);
    if (!answer.ok) throw new Error((await answer.json()).error);
    const picture = await createImageBitmap(await answer.blob());
    if (shown === step) draw(picture, [picture.width, picture.height]);
    picture.close();
  } catch (error) {
    fail(`The picture of step ${step} cannot be shown: ${error.message}`);
  }
}

function showLive() {
  shown = null;
  if (newest) draw(newest.picture, newest.size);
  render();
}

// Steps

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function addStep(step) {
  if (step.step < count) return;
  count = step.step + 1;
  const list = $("steps");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.step = step.step;
  const what = element("span", "what", "");
  what.append(element("b", "", step.what.replaceAll("_", " ")), element("span", "how", step.how));
  const person = step.by === "human";
  button.append(element("span", "number", step.step), what);
  button.append(element("span", person ? "by human" : "by", person ? "person" : step.by || ""));
  if (step.error) button.append(element("span", "error", step.error));
  button.title = `${step.what} ${step.how} (after ${clock(step.elapsed_s)})`;
  button.addEventListener("click", () => showRecorded(step.step));
  const item = document.createElement("li");
  item.append(button);
  list.append(item);
  if (atEnd) list.scrollTop = list.scrollHeight;
}

// What a person does, in order, one request at a time

const queue = [];
let sending = false;
let giving = false;

function send(actions, repeated) {
  if (!state || !state.mine || (repeated && queue.length)) return;
  if (shown !== null) {
    // It was meant for a picture of the past.
    if (actions[0].type !== "move") showLive();
    return;
  }
  for (const action of actions) {
    const last = queue[queue.length - 1];
    const like = last && last.type === action.type;
    if (like && action.type === "move") Object.assign(last, action);
    else if (like && action.type === "type" && last.text.length + action.text.length < TEXT_LIMIT) {
      last.text += action.text;
    } else queue.push(action);
  }
  work();
}

async function work() {
  if (sending) return;
  sending = true;
  while (queue.length) {
    const next = queue.shift();
    const call = typeof next === "function" ? next : () => act(next);
    await call();
  }
  sending = false;
}

// Never sent twice: it may have been done although no answer came.
async function act(action) {
  try {
    const answer = await ask("/view/act", { action });
    const told = await answer.json();
    fail(told.error || "");
    if (!answer.ok) queue.length = 0;
  } catch {
    queue.length = 0;
    fail("No answer came; the last action may not have been done.");
  }
}

async function hold(held) {
  try {
    const answer = await ask("/view/hold", { held });
    const told = await answer.json();
    if (answer.ok) learn(told);
    fail(answer.ok ? "" : told.error);
  } catch {
    fail("No answer came; try again.");
  }
}

async function takeOver() {
  showLive();
  await hold(true);
}

function then(call) {
  hands.flush();
  queue.push(call);
  work();
}

function giveBack() {
  then(async () => {
    giving = true;
    hands.stop();
    await hold(false);
    giving = false;
    $("take").focus();
  });
}

// Asks for a text; null when the person would rather not.
function askText({ head, label, yes, need }) {
  $("ask-head").textContent = head;
  $("ask-label").textContent = label;
  $("ask-yes").textContent = yes;
  const text = $("ask-text");
  text.value = "";
  text.required = Boolean(need);
  const dialog = $("ask");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes" ? text.value : null), {
      once: true,
    });
  });
}

async function typeText() {
  const text = await askText({ head: "Type a text", label: "It is typed as keys, where the computer's text cursor is.", yes: "Type it", need: true });
  if (text) send([{ type: "type", text }]);
  if (state.mine) hands.start();
}

async function submit() {
  const answer = await askText({ head: "Submit", label: "The task is done. An answer, only if the task asks for one:", yes: "Submit" });
  if (answer !== null) then(() => act({ type: "submit", answer: answer || null }));
}

async function giveUp() {
  const reason = await askText({ head: "Give up", label: "The task cannot be done, because:", yes: "Give up", need: true });
  if (reason !== null) then(() => act({ type: "give_up", reason }));
}

// What is to be seen

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

function put(id, text) {
  // Set only when it changes, or screen readers say it again and again.
  if ($(id).textContent !== text) $(id).textContent = text;
}

const fail = (text) => put("fault", text);

function status() {
  if (state && state.over) return ["over", connected && valid ? "Over" : "Over, and no longer served"];
  if (!valid) return ["lost", "This link is not valid any more"];
  if (!connected) return ["lost", "Connection lost, trying again …"];
  if (!state) return ["wait", "Connecting …"];
  if (state.mine) return ["human", "You have the machine"];
  if (state.held) return ["human", "A person has the machine"];
  return ["agent", "The agent has the machine"];
}

function hint() {
  if (!state || state.over || !connected) return "";
  if (!state.mine) return state.held ? "Another person has it; wait until it is given back." : "";
  if (document.activeElement === $("keys")) return "Ctrl+Alt lets go of the keyboard · Ctrl+Shift+V types your clipboard";
  return "Click on the screen to use its keyboard.";
}

function render() {
  const [kind, text] = status();
  const usable = Boolean(valid && connected && state && !state.over);
  const mine = usable && state.mine;
  $("status").dataset.kind = kind;
  put("status", text);
  put("hint", hint());
  $("take").hidden = mine || Boolean(state && state.over);
  $("take").disabled = !usable || state.held;
  $("mine").hidden = !mine;
  $("frame").classList.toggle("held", mine);
  $("frame").classList.toggle("away", !usable && !(state && state.over));
  $("recorded").hidden = shown === null;
  put("live", state && state.over ? "Back to the end" : "Back to live");
  if (shown !== null) put("recorded-step", `Recorded at step ${shown}`);
  for (const button of $("steps").querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
  const current = shown !== null && $("steps").querySelector(`[data-step="${shown}"]`);
  if (current) current.setAttribute("aria-current", "true");
  if (!usable && hands.active) hands.stop();
  if (!state) return;
  document.title = `${state.task} · cua-gym`;
  put("task", state.task);
  put("agent", state.agent);
  put("seed", `seed ${state.seed}`);
  put("instruction", state.instruction);
  put("steps-left", `${state.steps_left}`);
  $("steps-left").classList.toggle("few", state.steps_left <= 3);
  $("end").hidden = !state.over;
  put("ending", state.ending || "");
  const judging = connected && valid ? "Being judged …" : "The verdict stands in the record of the run.";
  put("outcome", state.outcome ? state.outcome.text : judging);
  $("outcome").className = state.outcome ? (state.outcome.success ? "good" : "bad") : "";
  tick();
}

function tick() {
  if (!state) return;
  const gone = state.over ? 0 : (performance.now() - toldAt) / 1000;
  const left = Math.max(0, state.seconds_left - gone);
  put("time-left", clock(left));
  $("time-left").classList.toggle("few", left < 30);
}

const hands = new Hands(canvas, $("keys"), send, () => $("give").focus());

$("take").addEventListener("click", takeOver);
$("give").addEventListener("click", giveBack);
$("paste").addEventListener("click", typeText);
$("submit").addEventListener("click", submit);
$("give-up").addEventListener("click", giveUp);
$("live").addEventListener("click", showLive);
$("ask-no").addEventListener("click", () => $("ask").close());
$("keys").addEventListener("focus", render);
$("keys").addEventListener("blur", render);
addEventListener("pagehide", () => {
  if (state && state.mine) ask("/view/hold", { held: false }, { keepalive: true });
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
addEventListener("hashchange", () => location.hash && location.reload());
setInterval(tick, 500);

render();
followNews();
followScreen();
