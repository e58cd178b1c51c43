#include "framework/train/report_page.h"

namespace obelisk {

// Colours keep their meaning in every chart: blue is training, orange validation, red trouble.
const std::string_view kReportStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f6f4; --card: #ffffff; --ink: #1c1e22; --soft: #676c75; --rule: #e3e4e2;
  --grid: #ececea; --blue: #2463c5; --orange: #cc5714; --red: #c22f2f; --green: #2c7d43;
  --p0: #c9a227; --p1: #2463c5; --p2: #6f4fb3; --p3: #cc5714; --p4: #2b8a80; --p5: #a9adb3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131518; --card: #1b1e22; --ink: #e7e9eb; --soft: #9aa0a9; --rule: #2d3137;
    --grid: #272b30; --blue: #74a5f7; --orange: #f0904f; --red: #f07a7a; --green: #6cc287;
    --p0: #d9b84a; --p1: #74a5f7; --p2: #a78be6; --p3: #f0904f; --p4: #5bbcb1; --p5: #646a73;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 32px 20px 48px; max-width: 1120px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0; font-weight: 650; }
h2 { font-size: 15px; margin: 0 0 10px; font-weight: 650; }
header { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
header p { flex-basis: 100%; margin: 0; color: var(--soft); overflow-wrap: anywhere; }
.state { border: 1px solid currentColor; border-radius: 99px; padding: 1px 11px; font-size: 13px; }
.good { color: var(--green); } .alert { color: var(--red); } .busy { color: var(--blue); }
.error { background: var(--card); border-left: 3px solid var(--red); padding: 10px 16px;
  margin: 16px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(156px, 1fr)); gap: 12px;
  margin: 22px 0 12px; }
.tile, .chart, section { background: var(--card); border: 1px solid var(--rule);
  border-radius: 8px; }
.tile { padding: 12px 16px; }
.tile span { display: block; color: var(--soft); font-size: 13px; }
.tile b { display: block; font-size: 24px; font-weight: 600; line-height: 1.3; }
.charts { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; }
.chart { margin: 0; padding: 14px 16px 8px; }
.chart:first-child { grid-column: 1 / -1; }
figcaption { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: baseline;
  margin-bottom: 6px; }
figcaption b { font-weight: 650; }
.unit, .note, .empty { color: var(--soft); font-size: 13px; }
.note { margin: 2px 0 4px; } .note.alert { color: var(--red); }
.empty { padding: 40px 0; text-align: center; }
.legend { margin-left: auto; display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 13px;
  color: var(--soft); }
.key { display: inline-block; width: 14px; height: 3px; border-radius: 2px; margin-right: 6px;
  vertical-align: middle; }
.key.line1 { background: var(--blue); } .key.line2 { background: var(--orange); }
.plot { position: relative; }
.plot > svg { display: block; width: 100%; height: auto; overflow: visible; }
.plot svg svg { overflow: hidden; }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); stroke-opacity: .5; }
.tick { fill: var(--soft); font-size: 11.5px; font-variant-numeric: tabular-nums; }
path.raw, path.line1, path.line2 { fill: none; stroke-linejoin: round; stroke-width: 2; }
path.raw { stroke: var(--blue); stroke-opacity: .28; stroke-width: 1; }
path.line1 { stroke: var(--blue); } path.line2 { stroke: var(--orange); }
.dot { stroke: var(--card); stroke-width: 1.2; }
.dot.raw { fill: var(--blue); fill-opacity: .28; } .dot.line1 { fill: var(--blue); }
.dot.line2 { fill: var(--orange); }
.bad { fill: var(--red); }
.cross { stroke: var(--soft); stroke-dasharray: 3 3; }
.readout { position: absolute; top: 8px; display: none; pointer-events: none; padding: 5px 10px;
  background: var(--card); border: 1px solid var(--rule); border-radius: 6px; font-size: 13px;
  white-space: nowrap; font-variant-numeric: tabular-nums; box-shadow: 0 2px 8px rgb(0 0 0 / .15); }
.readout span { display: block; }
section { padding: 14px 16px; margin-top: 12px; }
.bar { display: flex; gap: 2px; height: 22px; border-radius: 5px; overflow: hidden; }
.bar i { display: block; min-width: 1px; }
.line { position: relative; height: 24px; margin-bottom: 4px; overflow: hidden;
  background: var(--grid); border-radius: 5px; }
.line i { position: absolute; top: 0; bottom: 0; min-width: 1px; overflow: hidden; padding-left: 4px;
  font: 12px/24px system-ui, sans-serif; color: #fff; white-space: nowrap; }
.shares { display: flex; flex-wrap: wrap; gap: 4px 24px; margin-top: 10px; font-size: 13px; }
.shares i { display: inline-block; width: 10px; height: 10px; border-radius: 2px;
  margin-right: 7px; }
.shares span span { color: var(--soft); }
.c0 { background: var(--p0); } .c1 { background: var(--p1); } .c2 { background: var(--p2); }
.c3 { background: var(--p3); } .c4 { background: var(--p4); } .c5 { background: var(--p5); }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Consolas, monospace; }
.sample { font: 16px/1.6 Georgia, "DejaVu Serif", serif; max-width: 46em; }
summary { cursor: pointer; font-weight: 650; }
details pre { margin-top: 10px; }
table { border-collapse: collapse; font-size: 14px; width: 100%; }
th { text-align: left; font-weight: 400; color: var(--soft); padding: 3px 24px 3px 0;
  white-space: nowrap; vertical-align: top; width: 1%; }
td { padding: 3px 0; overflow-wrap: anywhere; }
@media (max-width: 800px) {
  .charts { grid-template-columns: minmax(0, 1fr); }
  .chart:first-child .plot { overflow-x: auto; }
  .chart:first-child .plot > svg { min-width: 680px; }
}
@media print { body { background: none; } .chart, section, .tile { break-inside: avoid; } }
)css";

const std::string_view kReportScript = R"js(
'use strict';
for (const plot of document.querySelectorAll('.plot')) {
  const data = JSON.parse(plot.querySelector('script').textContent);
  const svg = plot.querySelector('svg'), hover = svg.querySelector('.hover');
  const readout = plot.querySelector('.readout');
  const [left, top, width, height] = data.box;
  const px = x => left + (x - data.x[0]) / (data.x[1] - data.x[0]) * width;
  const py = y => top + (data.y[1] - y) / (data.y[1] - data.y[0]) * height;
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? points[low] : points[high];
  };
  const draw = (name, attributes) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    hover.append(node);
  };
  const clear = () => { hover.replaceChildren(); readout.style.display = 'none'; };
  svg.addEventListener('pointerleave', clear);
  svg.addEventListener('pointermove', event => {
    clear();
    const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    const at = (event.clientX - svg.getBoundingClientRect().left) * scale;
    if (at < left - 8 || at > left + width + 8) return;
    const x = data.x[0] + (at - left) / width * (data.x[1] - data.x[0]);
    const found = data.curves.filter(curve => curve.points.length > 0)
      .map(curve => ({curve, point: nearest(curve.points, x)}));
    if (found.length === 0) return;
    const near = found.reduce((a, b) =>
      Math.abs(b.point[0] - x) < Math.abs(a.point[0] - x) ? b : a).point[0];
    draw('line', {class: 'cross', x1: px(near), x2: px(near), y1: top, y2: top + height});
    readout.replaceChildren();
    const line = text => readout.append(Object.assign(document.createElement('span'), {textContent: text}));
    line('step ' + Math.round(near));
    for (const {curve, point} of found) {
      if (point[1] >= data.y[0] && point[1] <= data.y[1])
        draw('circle', {class: 'dot ' + curve.style, cx: px(point[0]), cy: py(point[1]), r: 4.5});
      const where = Math.round(point[0]) === Math.round(near) ? '' : ' at step ' + Math.round(point[0]);
      const value = Math.abs(point[1]) >= 1e4 && Math.abs(point[1]) < 1e15
        ? Math.round(point[1]).toLocaleString('en') : String(Number(point[1].toPrecision(5)));
      line(curve.name + ' ' + value + where);
    }
    readout.style.display = 'block';
    const right = at > left + width / 2;
    readout.style.left = right ? 'auto' : (at / scale + 14) + 'px';
    readout.style.right = right ? (plot.clientWidth - at / scale + 14) + 'px' : 'auto';
  });
}
)js";

}  // namespace obelisk
