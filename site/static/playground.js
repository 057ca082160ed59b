// The page of the playground: shows what numsim_playground_json says about a number in one and in all formats.
"use strict";

(function () {
  const byId = (id) => document.getElementById(id);
  const inputs = {value: byId("pg-value"), format: byId("pg-format"), bits: byId("pg-bits")};
  const examples = ["0.78", "0.1", "448", "464", "1e-8", "0x1p-10", "0.75+0.03", "-inf", "nan"];
  const modes = {
    rne: "to nearest, ties to even",
    rna: "to nearest, ties away from zero",
    rtz: "toward zero",
    rtp: "up",
    rtn: "down",
    odd: "to odd",
  };
  let inspect, inspectText;

  // An element with attributes and children; texts are never read as HTML.
  function element(name, attributes, ...children) {
    const namespace = /^(svg|line|circle|text|rect|path|g)$/.test(name) ? "http://www.w3.org/2000/svg" : null;
    const node = namespace ? document.createElementNS(namespace, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  // The fields of a code, coloured: sign, exponent, mantissa.
  function bitsOf(code, info) {
    const parts = code.bits.split(" ");
    const isSigned = info ? info.sign === "sign-magnitude" : parts.length === 3;
    const names = parts.length === 1 && !isSigned ? ["exponent"] : isSigned ? ["sign", "exponent", "mantissa"] : ["exponent", "mantissa"];
    const whole = info && info.sign === "two's complement";
    return element("span", {class: "pg-bits-shown"},
      ...parts.map((part, i) => element("span", {class: `pg-${whole ? "mantissa" : names[i]}`, title: whole ? "two's complement" : names[i]}, part)));
  }

  function infoOf(name) {
    return (window.numsimFormats || []).find((format) => format.name === name);
  }

  function relativeError(result) {
    // The text of a value is the shortest that gives its float32.
    const x = Number(result.float64), y = Math.fround(Number(result.roundings[0].value));
    if (result.exact) return "0";
    if (!isFinite(x) || x === 0 || !isFinite(y)) return "";
    const error = (y - x) / Math.abs(x);
    const percent = Math.abs(error) * 100;
    return `${error < 0 ? "−" : "+"}${percent < 0.01 ? percent.toExponential(1) : percent.toPrecision(2)} %`;
  }

  // The neighbours on a line, the value between them, and the midpoint.
  function numberLine(result) {
    const n = result.neighbours;
    if (!n) return element("p", {class: "pg-exact"}, result.exact ? "The format has this number exactly." : outside(result));
    const fraction = Math.min(1, Math.max(0, parseFloat(n.fraction)));
    const negative = n.away_from_zero.value.startsWith("-");
    const at = (f) => 12 + 76 * (negative ? 1 - f : f);
    const x = at(fraction);
    const label = (f, lines, anchor) => lines.map((line, i) =>
      element("text", {x: `${at(f)}%`, y: 74 + 18 * i, "text-anchor": anchor, class: i ? "pg-svg-code" : "pg-svg-value"}, line));
    const end = (f) => (f === 0) !== negative ? "start" : "end";
    return element("svg", {class: "pg-svg", width: "100%", height: 100, role: "img", "aria-label": `${result.value} between its neighbours`},
      element("line", {x1: "4%", x2: "96%", y1: 48, y2: 48, class: "pg-svg-axis"}),
      element("line", {x1: `${at(0.5)}%`, x2: `${at(0.5)}%`, y1: 40, y2: 56, class: "pg-svg-middle"}),
      element("circle", {cx: `${at(0)}%`, cy: 48, r: 7, class: "pg-svg-low"}),
      element("circle", {cx: `${at(1)}%`, cy: 48, r: 7, class: "pg-svg-high"}),
      element("line", {x1: `${x}%`, x2: `${x}%`, y1: 26, y2: 48, class: "pg-svg-given"}),
      element("text", {x: `${x}%`, y: 18, "text-anchor": x < 25 ? "start" : x > 75 ? "end" : "middle", class: "pg-svg-given-text"}, shortened(inputs.value.value)),
      ...label(0, [n.toward_zero.value, n.toward_zero.code], end(0)),
      ...label(1, [n.away_from_zero.value, n.away_from_zero.code], end(1)));
  }

  function outside(result) {
    return /^-?(inf|nan)/i.test(result.float64) ? "Not a finite number." : "Outside the range of the format.";
  }

  function shortened(text) {
    return text.length > 24 ? `${text.slice(0, 22)}…` : text;
  }

  function roundingTable(result, info) {
    const table = element("table", {class: "pg-table"});
    for (const r of result.roundings) {
      const other = r.overflow !== "nonsaturate";
      table.append(element("tr", {class: other ? "pg-other" : null},
        element("th", {scope: "row", title: modes[r.mode]}, other ? r.overflow : r.mode),
        element("td", {class: "pg-number"}, r.value),
        element("td", {class: "pg-code"}, r.code),
        element("td", {}, bitsOf(r, info)),
        element("td", {class: "pg-class"}, r.class === "normal" ? "" : r.class)));
    }
    return table;
  }

  function stochasticTable(result) {
    const n = result.neighbours;
    if (!n) return element("p", {class: "pg-about"}, "Nothing is random here: there are no two neighbours.");
    const table = element("table", {class: "pg-table"},
      element("tr", {}, element("th", {}, "variant"), element("th", {class: "pg-th-low"}, `P(${n.toward_zero.value})`),
        element("th", {class: "pg-th-high"}, `P(${n.away_from_zero.value})`), element("th", {}, "")));
    for (const s of result.stochastic) {
      const away = Number(s.p_away_from_zero) * 100;
      const bar = element("span", {class: "pg-bar", title: s.words_away_from_zero === null ? "unlimited random bits" :
        `${s.words_away_from_zero} of 2^${result.random_bits} random words round away from zero`},
        element("span", {style: `width:${100 - away}%`}), element("span", {style: `width:${away}%`}));
      table.append(element("tr", {}, element("th", {scope: "row"}, s.variant === "unlimited bits" ? "∞ bits" : s.variant),
        element("td", {class: "pg-number"}, s.p_toward_zero), element("td", {class: "pg-number"}, s.p_away_from_zero), element("td", {}, bar)));
    }
    return table;
  }

  function showAll(value, bits, chosen) {
    const table = byId("pg-all");
    const rows = [element("tr", {}, ...["format", "bits", "nearest", "error", "spacing", "code", "sign exponent mantissa"].map((title) => element("th", {scope: "col"}, title)))];
    for (const format of window.numsimFormats || []) {
      const result = ask(format.name, value, bits);
      if (result.error) continue;
      const nearest = result.roundings[0];
      const row = element("tr", {class: format.name === chosen ? "pg-chosen" : null, title: format.note},
        element("th", {scope: "row"}, element("a", {href: hashOf(value, format.name, bits)}, format.name)),
        element("td", {class: "pg-number"}, String(format.bits)),
        element("td", {class: "pg-number"}, nearest.value),
        element("td", {class: "pg-number"}, relativeError(result)),
        element("td", {class: "pg-number"}, result.neighbours ? result.neighbours.gap : ""),
        element("td", {class: "pg-code"}, nearest.code),
        element("td", {}, bitsOf(nearest, format)));
      rows.push(row);
    }
    table.replaceChildren(...rows);
  }

  // What the program says, or {error: text}.
  function ask(format, value, bits) {
    const answer = inspect(format, value, bits);
    return answer.startsWith("error: ") ? {error: answer.slice(7)} : JSON.parse(answer);
  }

  function hashOf(value, format, bits) {
    return `#${new URLSearchParams({value, format, bits})}`;
  }

  function show() {
    const value = inputs.value.value.trim(), format = inputs.format.value.trim(), bits = Number(inputs.bits.value) || 32;
    const result = ask(format, value, bits);
    const error = byId("pg-error");
    error.hidden = !result.error;
    error.textContent = result.error || "";
    byId("pg-result").classList.toggle("pg-stale", Boolean(result.error));
    if (result.error) return;
    byId("pg-result").hidden = false;
    history.replaceState(null, "", hashOf(value, format, bits));
    const info = infoOf(result.format);
    byId("pg-title").textContent = `${shortened(value)} in ${result.format}`;
    byId("pg-about").textContent = info ? `${info.note}. ${info.bits} bits, from ${info.min_positive} to ${info.max}.` : "A custom format.";
    byId("pg-line").replaceChildren(numberLine(result));
    byId("pg-roundings").replaceChildren(roundingTable(result, info));
    byId("pg-stochastic").replaceChildren(stochasticTable(result));
    byId("pg-text").textContent = `$ numsim inspect ${format} ${value}${bits === 32 ? "" : ` --sr-bits ${bits}`}\n${inspectText(format, value, bits)}`;
    showAll(value, bits, result.format);
  }

  let waiting;
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(show, 60);
  }

  function readHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const [key, input] of Object.entries(inputs)) {
      if (given.has(key)) input.value = given.get(key);
    }
  }

  function start(module) {
    const types = ["string", "string", "number"];
    inspect = module.cwrap("numsim_playground_json", "string", types);
    inspectText = module.cwrap("numsim_playground_text", "string", types);
    window.numsimInspect = inspect;
    for (const format of window.numsimFormats || []) {
      byId("pg-formats").append(element("option", {value: format.name}, format.note));
    }
    for (const text of examples) {
      const button = element("button", {type: "button"}, text);
      button.addEventListener("click", () => {
        inputs.value.value = text;
        show();
      });
      byId("pg-examples").append(button, " ");
    }
    for (const input of Object.values(inputs)) input.addEventListener("input", soon);
    window.addEventListener("hashchange", () => {
      readHash();
      show();
      byId("playground").scrollIntoView({behavior: "smooth"});
    });
    readHash();
    show();
  }

  if (typeof numsimPlayground === "undefined") {
    byId("pg-error").hidden = false;
    byId("pg-error").textContent = "This copy of the site was built without the playground: emscripten was not installed.";
  } else {
    numsimPlayground().then(start);
  }
})();
