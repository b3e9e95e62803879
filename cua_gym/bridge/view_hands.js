"use strict";

// A person's pointer and keyboard over the picture, as the episode's typed actions.
// Where they go, and whether anybody may act, is left to the page (view.js).

const MERGE_MS = 250; // a second press so soon makes a double click
const REST_MS = 400; // the pointer rests
const TYPE_MS = 150; // text is collected for so long
const WHEEL_MS = 100;
const NEAR_PX = 4; // CSS pixels: a hand is not steadier
const PATH_GAP = 6; // native pixels between points of a drag
const PATH_POINTS = 100;
const TEXT_LIMIT = 20000;

const BUTTONS = ["left", "middle", "right"];

// KeyboardEvent.key -> our name, where they differ
const NAMED = {
  Escape: "esc", Enter: "enter", Tab: "tab", Backspace: "backspace", Delete: "delete",
  Insert: "insert", Home: "home", End: "end", PageUp: "page_up", PageDown: "page_down",
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
  PrintScreen: "print", Pause: "pause", ContextMenu: "menu", CapsLock: "caps_lock",
  NumLock: "num_lock", ScrollLock: "scroll_lock",
};
for (let n = 1; n <= 12; n++) NAMED[`F${n}`] = `f${n}`;
const MODIFIERS = { Control: "ctrl", Alt: "alt", Shift: "shift", Meta: "super", AltGraph: "alt_r" };

// Places of a US keyboard, for chords whose character has no unshifted key of its own.
const PLACES = {
  Minus: "-", Equal: "=", BracketLeft: "[", BracketRight: "]", Backslash: "\\", Semicolon: ";",
  Quote: "'", Backquote: "`", Comma: ",", Period: ".", Slash: "/", Space: "space",
  IntlBackslash: "less", NumpadAdd: "kp_add", NumpadSubtract: "kp_subtract",
  NumpadMultiply: "kp_multiply", NumpadDivide: "kp_divide", NumpadDecimal: "kp_decimal",
};

function keyName(event) {
  const { key, code } = event;
  if (NAMED[key]) return NAMED[key];
  if (/^[a-z0-9[\]\\;'`,./=-]$/.test(key.toLowerCase())) return key.toLowerCase();
  if (PLACES[code]) return PLACES[code];
  const place = /^(?:Key|Digit)(\w)$/.exec(code);
  if (place) return place[1].toLowerCase();
  const pad = /^Numpad(\d)$/.exec(code);
  return pad ? `kp_${pad[1]}` : null;
}

function modifiersOf(event) {
  const held = [];
  // AltGr makes characters; Windows tells it as Ctrl and Alt.
  const graph = event.getModifierState("AltGraph");
  if (event.ctrlKey && !graph) held.push("ctrl");
  if (event.shiftKey) held.push("shift");
  if (event.altKey && !graph) held.push("alt");
  if (event.metaKey) held.push("super");
  return held;
}

// Points at least PATH_GAP apart, at most PATH_POINTS of them, both ends kept.
function thinned(path) {
  const kept = [path[0]];
  for (const point of path.slice(1, -1)) {
    const [x, y] = kept[kept.length - 1];
    if (Math.hypot(point[0] - x, point[1] - y) >= PATH_GAP) kept.push(point);
  }
  const every = Math.ceil(kept.length / PATH_POINTS);
  return [...kept.filter((_, i) => i % every === 0), path[path.length - 1]];
}

// canvas: the picture, its own pixels the native ones. keys: the text area that hears the keyboard.
// send(actions): what to do next, in order. leave(): the keyboard is to be let go.
class Hands {
  constructor(canvas, keys, send, leave) {
    this.canvas = canvas;
    this.keys = keys;
    this.send = send;
    this.leave = leave;
    this.active = false;
    this.forget();
    this.listen(canvas, "pointerdown", this.press);
    this.listen(canvas, "pointermove", this.move);
    this.listen(canvas, "pointerup", this.release);
    this.listen(canvas, "pointercancel", this.cancel);
    this.listen(canvas, "pointerleave", () => clearTimeout(this.restTimer));
    this.listen(canvas, "wheel", this.wheel);
    for (const name of ["contextmenu", "mousedown", "auxclick", "dragstart"]) {
      this.listen(canvas, name, (event) => event.preventDefault());
    }
    this.listen(keys, "keydown", this.keyDown);
    this.listen(keys, "keyup", this.keyUp);
    this.listen(keys, "input", this.input);
    this.listen(keys, "compositionend", this.input);
    this.listen(keys, "paste", this.paste);
    this.listen(keys, "blur", () => (this.alone = null));
  }

  listen(target, name, hear) {
    const act = (event) => this.active && hear.call(this, event);
    target.addEventListener(name, act, { passive: false });
  }

  start() {
    this.active = true;
    this.keys.disabled = false;
    this.keys.focus({ preventScroll: true });
  }

  // What is not finished is not done.
  stop() {
    this.active = false;
    this.keys.value = "";
    this.keys.disabled = true;
    this.forget();
  }

  forget() {
    clearTimeout(this.clickTimer);
    clearTimeout(this.restTimer);
    clearTimeout(this.typeTimer);
    clearTimeout(this.wheelTimer);
    this.pressed = null; // a button is down: where, which, the path since
    this.click = null; // a click that may become a double click
    this.text = "";
    this.notches = [0, 0];
    this.wheelAt = null;
    this.over = null; // where the pointer is
    this.alone = null; // a modifier that was pressed and nothing else since
  }

  // In the order in which things were done: before one kind begins, the others end.
  flush(but) {
    if (but !== "click") this.flushClick();
    if (but !== "text") this.flushText();
    if (but !== "wheel") this.flushWheel();
    clearTimeout(this.restTimer);
  }

  // Pointer

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const inside = (value, size) => Math.min(size - 1, Math.max(0, Math.floor(value)));
    return [
      inside(((event.clientX - box.left) * this.canvas.width) / box.width, this.canvas.width),
      inside(((event.clientY - box.top) * this.canvas.height) / box.height, this.canvas.height),
    ];
  }

  press(event) {
    event.preventDefault();
    this.keys.focus({ preventScroll: true });
    const button = BUTTONS[event.button];
    if (!button || this.pressed) return;
    this.alone = null;
    this.flush("click");
    clearTimeout(this.clickTimer);
    this.canvas.setPointerCapture(event.pointerId);
    const spot = [event.clientX, event.clientY];
    this.pressed = { button, spot, path: [this.at(event)], far: false, held: modifiersOf(event) };
  }

  move(event) {
    this.over = this.at(event);
    if (this.pressed) {
      const [x, y] = this.pressed.spot;
      if (Math.hypot(event.clientX - x, event.clientY - y) > NEAR_PX) this.pressed.far = true;
      this.pressed.path.push(this.at(event));
      return;
    }
    const [x, y] = this.over;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => {
      this.flush();
      this.send([{ type: "move", x, y }]);
    }, REST_MS);
  }

  release(event) {
    const pressed = this.pressed;
    if (!pressed || BUTTONS[event.button] !== pressed.button) return;
    this.pressed = null;
    if (pressed.far) {
      this.flushClick();
      pressed.path.push(this.at(event));
      const drag = { type: "drag", path: thinned(pressed.path), button: pressed.button };
      this.send(this.holding(pressed.held, drag));
      return;
    }
    const [x, y] = pressed.path[0];
    const before = this.click;
    const again =
      before && before.action.button === pressed.button &&
      before.action.modifiers.join() === pressed.held.join() &&
      Math.hypot(pressed.spot[0] - before.spot[0], pressed.spot[1] - before.spot[1]) <= NEAR_PX;
    if (again) {
      before.action.count += 1;
    } else {
      this.flushClick();
      const action = { type: "click", x, y, button: pressed.button, count: 1, modifiers: pressed.held };
      this.click = { spot: pressed.spot, action };
    }
    if (this.click.action.count === 3) this.flushClick();
    else this.clickTimer = setTimeout(() => this.flushClick(), MERGE_MS);
  }

  cancel() {
    this.pressed = null;
    this.flushClick();
  }

  flushClick() {
    clearTimeout(this.clickTimer);
    const click = this.click;
    this.click = null;
    if (click) this.send([click.action]);
  }

  wheel(event) {
    event.preventDefault();
    this.flush("wheel");
    this.alone = null;
    const held = modifiersOf(event);
    // A wheel event tells whole pixels of the page only.
    const [x, y] = this.over || this.at(event);
    if (this.wheelAt && this.wheelAt.held.join() !== held.join()) this.flushWheel();
    this.wheelAt = { x, y, held };
    [event.deltaX, event.deltaY].forEach((delta, i) => {
      const exact = (i ? event.wheelDeltaY : event.wheelDeltaX) || 0;
      // A wheel's notch is 120 whatever the zoom; touch pads and others tell pixels or lines.
      if (exact && exact % 120 === 0) this.notches[i] -= exact / 120;
      else this.notches[i] += delta / [100, 3, 1][event.deltaMode];
    });
    clearTimeout(this.wheelTimer);
    this.wheelTimer = setTimeout(() => this.flushWheel(), WHEEL_MS);
  }

  flushWheel() {
    clearTimeout(this.wheelTimer);
    const at = this.wheelAt;
    if (!at) return;
    const [dx, dy] = this.notches.map((n) => Math.max(-100, Math.min(100, Math.trunc(n))));
    if (dx || dy) {
      this.notches = this.notches.map((n) => n - Math.trunc(n));
      this.send(this.holding(at.held, { type: "scroll", x: at.x, y: at.y, dx, dy }));
    }
    this.wheelAt = null;
  }

  // An action while keys are held that it cannot name itself.
  holding(held, action) {
    return [
      ...held.map((key) => ({ type: "key_down", key })),
      action,
      ...held.toReversed().map((key) => ({ type: "key_up", key })),
    ];
  }

  // Keyboard

  keyDown(event) {
    // An input method or a dead key: the character comes later.
    if (event.isComposing || event.keyCode === 229 || event.key === "Dead") {
      this.alone = null;
      return;
    }
    const modifier = MODIFIERS[event.key];
    if (modifier) {
      if (modifier !== "alt_r") event.preventDefault();
      if (event.repeat) return;
      const leaving = this.alone === "ctrl" && event.code === "AltLeft";
      this.alone = leaving ? "leave" : modifiersOf(event).length > 1 ? null : modifier;
      return;
    }
    this.alone = null;
    const held = modifiersOf(event);
    const chord = held.some((key) => key !== "shift");
    if (!chord && [...event.key].length === 1) return; // text: `input` hears of it
    // Ctrl+Shift+V, or Cmd+V, types what this computer's clipboard holds: `paste` hears of it.
    if (event.code === "KeyV" && ["ctrl+shift", "super"].includes(held.join("+"))) return;
    event.preventDefault();
    const name = keyName(event);
    if (!name) return;
    this.flush();
    this.send([{ type: "key", combo: [...held, name].join("+") }], event.repeat);
  }

  keyUp(event) {
    event.preventDefault();
    if (event.key !== "Control" && event.key !== "Alt" && event.key !== "Meta") return;
    const alone = this.alone;
    this.alone = null;
    if (alone === "leave") this.leave();
    else if (alone === MODIFIERS[event.key] && alone !== "ctrl") {
      this.flush();
      this.send([{ type: "key", combo: alone }]);
    }
  }

  input(event) {
    if (event.isComposing) return;
    this.type(this.keys.value);
    this.keys.value = "";
  }

  paste(event) {
    event.preventDefault();
    this.type(event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n"));
  }

  type(text) {
    if (!text) return;
    this.flush("text");
    this.text += text;
    clearTimeout(this.typeTimer);
    this.typeTimer = setTimeout(() => this.flushText(), TYPE_MS);
  }

  flushText() {
    clearTimeout(this.typeTimer);
    const characters = [...this.text];
    this.text = "";
    for (let i = 0; i < characters.length; i += TEXT_LIMIT) {
      this.send([{ type: "type", text: characters.slice(i, i + TEXT_LIMIT).join("") }]);
    }
  }
}
