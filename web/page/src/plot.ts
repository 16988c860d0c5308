/** How uPlot is set up here. */

import uPlot from 'uplot';
import { lonePoints, valueAt, type Cell } from './columns';
import { canvas, lineColor, lineDash, type Theme } from './palette';
import { cursor, go, type Line } from './state';
import { tickLabel, ticks, tickStep } from './time';
import { formatTicks, increments, type Unit } from './units';

const font = '12px system-ui, sans-serif';

export function makePlot(
  box: HTMLElement,
  data: uPlot.AlignedData,
  lines: Line[],
  theme: Theme,
  unit: Unit,
): uPlot {
  const ink = canvas[theme];
  const options: uPlot.Options = {
    width: box.clientWidth,
    height: box.clientHeight,
    ms: 1,
    padding: [12, 8, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.18 },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 6 },
      focus: { prox: -1 },
      dataIdx: (u, si, i) => (si === 0 ? i : (valueAt(u.data[si] as Cell[], i) ?? i)),
      points: { size: 7, width: 0, fill: (_, si) => lineColor(si - 1, theme) },
      bind: {
        dblclick: () => () => {
          go({ zoom: null });
          return null;
        },
      },
    },
    // Not a scale of time to uPlot: its labels would follow the zone of the operating system.
    scales: { x: { time: false }, y: { range: yRange } },
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const color = lineColor(line.index, theme);
        const lone = new Map<unknown, number[]>();
        return {
          stroke: color,
          width: 1.5,
          dash: lineDash(line.index),
          spanGaps: false,
          ...(lines.length === 1 ? { fill: color + (theme === 'light' ? '14' : '1f') } : {}),
          points: {
            show: false,
            size: 5,
            fill: color,
            stroke: color,
            // Dots only where no line can show a sample.
            filter: (u, si) => {
              const column = u.data[si] as Cell[];
              let found = lone.get(column);
              if (found === undefined) {
                found = lonePoints(column);
                lone.clear();
                lone.set(column, found);
              }
              return found;
            },
          },
        };
      }),
    ],
    axes: [
      {
        stroke: ink.text,
        font,
        size: 34,
        gap: 8,
        grid: { stroke: ink.grid, width: 1 },
        ticks: { show: false },
        border: { show: true, stroke: ink.edge, width: 1 },
        splits: (u, _axis, min, max) => ticks(min, max, most(u)),
        values: (u, splits) => {
          const step = tickStep(u.scales.x?.min ?? 0, u.scales.x?.max ?? 1, most(u));
          return splits.map((t) => tickLabel(t, step));
        },
      },
      {
        stroke: ink.text,
        font,
        gap: 10,
        size: (u, values) => axisWidth(u, values),
        grid: { stroke: ink.grid, width: 1 },
        ticks: { show: false },
        incrs: increments(unit),
        space: 44,
        values: (_, splits) => formatTicks(splits, unit),
      },
    ],
    hooks: {
      setCursor: [
        (u) => {
          const { left, top, idx } = u.cursor;
          const on = left !== undefined && left >= 0 && idx !== null && idx !== undefined;
          cursor.value = on ? { index: idx, left, top: top ?? 0 } : null;
        },
      ],
      setSelect: [
        (u) => {
          const { left, width } = u.select;
          if (width < 6) return;
          const zoom: [number, number] = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          go({ zoom });
        },
      ],
    },
  };
  return new uPlot(options, data, box);
}

/** One label of the x axis needs this many pixels. */
function most(u: uPlot): number {
  return Math.max(2, Math.floor((u.over.clientWidth || u.width) / 76));
}

/** From zero when that costs little of the height; round at both ends otherwise. */
function yRange(_: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (min === max) {
    if (min === 0) return [0, 1];
    const room = Math.abs(min) * 0.1;
    return min >= 0 && min <= 1 ? [0, max * 1.2] : [min - room, max + room];
  }
  const room = (max - min) * 0.08;
  const low = min >= 0 && min < (max - min) * 1.2 ? 0 : min - room;
  const high = max <= 0 && -max < (max - min) * 1.2 ? 0 : max + room;
  return [low, high];
}

const measure = document.createElement('canvas').getContext('2d');

function axisWidth(u: uPlot, values: string[] | null): number {
  if (values === null || measure === null) return 40;
  measure.font = font;
  const widest = Math.max(...values.map((v) => measure.measureText(v).width), 20);
  return Math.ceil(widest) + 14 + (u.width > 600 ? 4 : 0);
}
