"use strict";
(() => {
  const one = (id) => document.getElementById(id);
  const data = JSON.parse(one("explore-data").textContent);
  const selects = [...document.querySelectorAll("#explore select[data-axis]")];
  const risk = one("explore-risk"), utility = one("explore-utility"), plot = one("explore-plot");
  const W = 360, H = 250, LEFT = 48, RIGHT = 350, TOP = 12, BOTTOM = 222;
  const named = data.settings.filter((each) => each.tag).sort((a, b) => (a.tag < b.tag ? -1 : 1));
  let chosen = named[0] || data.settings.find((each) => !each.error) || data.settings[0];

  const number = (x, digits = 4) => (x !== 0 && Math.abs(x) < 1e-4 ? x.toExponential(1)
    : x.toLocaleString("en-US", { maximumSignificantDigits: digits }));
  const mean = (setting, goal) => setting.figures[goal] && setting.figures[goal][0];
  const name = (setting) => data.axes.map(([label, values], i) => {
    const value = values[setting.at[i]];
    return /^(yes|no|[-+\d.,e]+)$/.test(value) ? `${label} ${value}` : value;
  }).filter((text) => text !== "–").join(", ");

  // The settings that are compared with the one that is chosen, and have both figures.
  const compared = () => data.settings.filter((each) =>
    data.axes.every(([, , fences], i) => !fences || each.at[i] === chosen.at[i])
    && mean(each, +risk.value) !== null && mean(each, +utility.value) !== null);

  // Those that no other is better than, by risk; of equal ones, all. Where a seed failed, the figures
  // of the others are not those of the setting.
  const frontier = (settings) => {
    const x = +risk.value, y = +utility.value, sign = data.goals[y][1] ? 1 : -1;
    const best = [];
    for (const each of settings.filter((own) => own.n === own.of).sort((a, b) =>
      mean(a, x) - mean(b, x) || sign * (mean(a, y) - mean(b, y)))) {
      const last = best[best.length - 1];
      const gain = last && sign * (mean(last, y) - mean(each, y));
      if (!last || gain > 0 || (gain === 0 && mean(each, x) === mean(last, x))) best.push(each);
    }
    return best;
  };

  const draw = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    plot.append(element);
    return element;
  };

  // From figures to places on an axis, and its ticks.
  const scale = (values, from, to) => {
    let low = Math.min(...values), high = Math.max(...values);
    const log = low > 0 && high >= 20 * low, ticks = [];
    if (log) {
      for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) {
        for (const m of high > 200 * low ? [1] : [1, 2, 5]) ticks.push(m * 10 ** e);
      }
    } else {
      const spread = high - low || Math.abs(high) || 1;
      if (low === high) return [() => (from + to) / 2, [low]];
      low -= spread * 0.06;
      high += spread * 0.06;
      const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
      for (let i = Math.ceil(low / step); i * step <= high; i += 1) ticks.push(+(i * step).toPrecision(6));
    }
    const f = log ? Math.log : (x) => x, pad = log ? 0.04 * (f(high) - f(low)) : 0;
    const place = (x) => from + (to - from) * (f(x) - f(low) + pad) / (f(high) - f(low) + 2 * pad);
    const inside = (x) => (place(x) - from) * (place(x) - to) <= 0;
    return [place, ticks.filter(inside)];
  };

  // The bounds on a figure of settings like the chosen one: their value, label, and whether they are
  // the most that is allowed.
  const boundsOf = (goal) => data.bounds.filter(([i, , , , axis, at]) =>
    i === goal && (axis === undefined || chosen.at[axis] === at)).map(([, ...bound]) => bound);

  // About the width of a label's letter. Boxes are [left, right, top, bottom].
  const LETTER = 5.8;
  const apart = (box, other) => box[0] > other[1] || box[1] < other[0] || box[2] >= other[3] || box[3] <= other[2];

  // Lines of bounds, each with a label along it where no point and no other label is, if there is
  // such a place. Returns the boxes of the labels and of the lines.
  const drawBounds = (bounds, px, points) => {
    const boxes = [], lines = [];
    for (const [value, label] of [...bounds].sort((a, b) => a[0] - b[0])) {
      const x = px(value), long = LETTER * label.length;
      draw("line", { x1: x, x2: x, y1: TOP - 8, y2: BOTTOM, class: "bound" });
      lines.push([x - 2, x + 2, TOP - 8, BOTTOM]);
      const spots = [TOP - 6, BOTTOM - 4 - long, (TOP + BOTTOM - long) / 2]
        .flatMap((top) => [[x - 4, top], [x + 11, top]]).filter(([at]) => at - 11 >= LEFT);
      const box = ([at, top]) => [at - 11, at + 3, top, top + long];
      const spot = spots.find((each) => [...boxes, ...points].every((other) => apart(box(each), other))) || spots[0];
      boxes.push(box(spot));
      draw("text", { x: spot[0], y: spot[1], class: "aside end", transform: `rotate(-90 ${spot[0]} ${spot[1]})` }, label);
    }
    return [boxes, lines];
  };

  // Boxes along a line through places.
  const boxesAlong = (places) => places.slice(1).flatMap(([x, y], i) => {
    const [from, base] = places[i], n = Math.ceil(Math.hypot(x - from, y - base) / 4);
    return Array.from({ length: n }, (_, j) => [from + (x - from) * j / n, base + (y - base) * j / n])
      .map(([a, b]) => [a - 2, a + 2, b - 2, b + 2]);
  });

  // Labels of the named settings, each where no other label is, and if there is such a place, no point
  // and no line: `taken` are the boxes of the labels that are there, `points` those of the points,
  // `lines` those of bounds and of the frontier.
  const drawTags = (settings, place, taken, points, lines) => {
    const shown = named.filter((each) => settings.includes(each));
    const full = [...taken, ...shown.map(place).map(([x, y]) => [x - 9, x + 9, y - 8, y + 4])];
    for (const each of shown) {
      const [x, y] = place(each), width = LETTER * each.tag.length, middle = -width / 2, left = -width - 12;
      draw("circle", { cx: x, cy: y, r: 8, class: "named" });
      const spots = [[12, 4], [middle, -13], [middle, 20], [left, 4], [12, -11], [left, -11], [12, 18], [left, 18],
        [middle, -26], [middle, 33], [12, 32], [left, 32], [12, -25], [left, -25], [26, 4], [-width - 26, 4],
        [26, 18], [-width - 26, 18], [12, 46], [left, 46]].map(([dx, dy]) => [x + dx, y + dy])
        .filter(([from, base]) => from > LEFT && from + width < W && base > TOP && base < BOTTOM);
      const box = ([from, base]) => [from, from + width, base - 12, base];
      const find = (others) => spots.find((spot) => others.every((other) => apart(box(spot), other)));
      const free = find([...full, ...points, ...lines]) || find([...full, ...points]) || find(full) || spots[0] || [LEFT, y];
      full.push(box(free));
      draw("text", { x: free[0], y: free[1], class: "aside" }, each.tag);
    }
  };

  const plotAll = (settings, best) => {
    const x = +risk.value, y = +utility.value;
    plot.replaceChildren();
    if (!settings.length) return;
    const bounds = boundsOf(x);
    const [px, xs] = scale([...settings.map((each) => mean(each, x)), ...bounds.map(([value]) => value)], LEFT, RIGHT);
    const [py, ys] = scale(settings.map((each) => mean(each, y)), BOTTOM, TOP);
    for (const tick of ys) {
      draw("line", { x1: LEFT, x2: RIGHT, y1: py(tick), y2: py(tick), class: "rule" });
      draw("text", { x: LEFT - 6, y: py(tick) + 4, class: "tick end" }, number(tick));
    }
    for (const tick of xs) draw("text", { x: px(tick), y: BOTTOM + 20, class: "tick middle" }, number(tick));
    const place = (each) => [px(mean(each, x)), py(mean(each, y))];
    const points = settings.map(place).map(([a, b]) => [a - 8, a + 8, b - 8, b + 8]);
    const [taken, lines] = drawBounds(bounds, px, points);
    draw("polyline", { class: "frontier",
      points: best.map((each) => `${px(mean(each, x))},${py(mean(each, y))}`).join(" ") });
    for (const each of settings) {
      const i = data.colour < 0 ? 0 : each.at[data.colour];
      const point = draw("text", { x: px(mean(each, x)), y: py(mean(each, y)) + 4,
        class: `point line-${i + 1}` }, data.marks[i]);
      point.addEventListener("click", () => choose(each));
    }
    drawTags(settings, place, taken, points, [...lines, ...boxesAlong(best.map(place))]);
    if (settings.includes(chosen)) {
      draw("circle", { cx: px(mean(chosen, x)), cy: py(mean(chosen, y)), r: 9, class: "ring" });
    }
  };

  const cell = (row, tag, text, kind) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (kind) element.className = kind;
    if (tag === "th") element.scope = "row";
    row.append(element);
    return element;
  };

  const fill = (body, lines) => body.replaceChildren(...lines.map((line) => {
    const row = document.createElement("tr");
    line(row);
    return row;
  }));

  const share = (row, part) => {
    const box = document.createElement("span"), bar = document.createElement("i");
    box.className = "share";
    bar.style.width = `${100 * part}%`;
    box.append(bar);
    cell(row, "td", "").append(box);
  };

  const show = () => {
    const settings = compared(), best = frontier(settings), place = best.indexOf(chosen);
    const x = data.goals[+risk.value], y = data.goals[+utility.value];
    selects.forEach((select) => { select.value = chosen.at[+select.dataset.axis]; });
    one("explore-axes").textContent = `${y[0]} (${y[1] ? "less" : "more"} is better) by ${x[0]}`;
    plotAll(settings, best);
    const bounds = boundsOf(+risk.value);
    plot.setAttribute("aria-label", [`${y[0]} by ${x[0]} of ${settings.length} settings, ${best.length} on the frontier`,
      ...bounds.map(([, label]) => `a line at ${label}`), ...named.map((each) => `${each.tag}: ${name(each)}`)].join("; "));
    const told = [+risk.value, +utility.value].filter((i) => chosen.figures[i])
      .map((i, at) => `${data.goals[i][0]} ${at ? "" : "is "}${number(mean(chosen, i))}`);
    one("explore-name").textContent = name(chosen) + (chosen.tag ? ` (${chosen.tag})` : "");
    // Of each risk: who reads of one bound takes it for that of all.
    const held = data.goals.flatMap(([label], i) => (chosen.figures[i] ? boundsOf(i) : []).map(([value, bound, most]) =>
      ` ${label[0].toUpperCase()}${label.slice(1)}: ${(most ? mean(chosen, i) <= value : mean(chosen, i) >= value) ? "within" : "outside"} ${bound}.`));
    one("explore-said").textContent = chosen.error ? `It failed: ${chosen.error}`
      : `${told.join(", ")}. ${chosen.n < chosen.of
        ? `Figures of ${chosen.n} of ${chosen.of} seeds: ${chosen.of - chosen.n} failed, so it is not compared with others.`
        : place >= 0 ? "On the frontier: no other setting is better in both."
        : "Not on the frontier: another setting is better in one, and no worse in the other."}${held.join("")}`;
    one("explore-part").textContent = chosen.part;
    one("explore-part").hidden = !chosen.part;
    fill(one("explore-figures"), data.goals.map(([label], i) => (row) => {
      const [value, spread] = chosen.figures[i] || [null, null];
      cell(row, "th", label);
      cell(row, "td", value === null ? "–" : number(value) + (spread === null ? "" : ` ± ${number(spread, 2)}`), "number");
    }));
    one("explore-classes").hidden = !chosen.sizes.length;
    fill(one("explore-sizes"), chosen.sizes.map(([range, part]) => (row) => {
      cell(row, "th", range);
      share(row, part);
      cell(row, "td", `${number(+(100 * part).toPrecision(3))} %`, "number");
    }));
    one("explore-yaml").textContent = chosen.yaml
      .map(([from, to]) => data.lines.slice(from, to).join("\n")).join("\n") + "\n";
    one("explore-copied").textContent = "";
    one("explore-safer").setAttribute("aria-disabled", String(!step(best, -1)));
    one("explore-useful").setAttribute("aria-disabled", String(!step(best, 1)));
  };

  // The next setting on the frontier with less risk (-1), or with more utility (1).
  const step = (best, way) => {
    const x = +risk.value, here = mean(chosen, x), there = best.includes(chosen);
    const ahead = (each) => (mean(each, x) - here) * way;
    const side = best.filter((each) => here === null || ahead(each) > 0 || (!there && ahead(each) === 0));
    return way > 0 ? side[0] : side[side.length - 1];
  };

  const choose = (setting) => {
    if (!setting) return;
    chosen = setting;
    show();
  };

  // The setting that has a value on an axis, and of the others as many as there are.
  const nearest = (axis, value) => {
    const same = (each) => each.at.filter((v, i) => v === chosen.at[i]).length;
    return data.settings.filter((each) => each.at[axis] === value)
      .reduce((a, b) => (same(b) > same(a) ? b : a));
  };

  const copy = async () => {
    const pre = one("explore-yaml");
    let done = true;
    try {
      await navigator.clipboard.writeText(pre.textContent);
    } catch {
      getSelection().selectAllChildren(pre);
      done = document.execCommand("copy");
    }
    one("explore-copied").textContent = done ? "Copied." : "The browser forbids it: select the text, and copy it.";
  };

  for (const select of selects) {
    select.addEventListener("change", () => choose(nearest(+select.dataset.axis, +select.value)));
  }
  for (const select of [risk, utility]) select.addEventListener("change", show);
  one("explore-safer").addEventListener("click", () => choose(step(frontier(compared()), -1)));
  one("explore-useful").addEventListener("click", () => choose(step(frontier(compared()), 1)));
  one("explore-copy").addEventListener("click", copy);
  one("explore-still").hidden = true;
  one("explore-live").hidden = false;
  show();
})();
