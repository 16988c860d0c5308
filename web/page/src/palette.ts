/** Colours of lines: eight that colour-blind eyes tell apart, then the same again dashed and dotted. */

import { signal } from '@preact/signals';

export type Theme = 'light' | 'dark';

const dark = matchMedia('(prefers-color-scheme: dark)');
export const theme = signal<Theme>(dark.matches ? 'dark' : 'light');
dark.addEventListener('change', (e) => (theme.value = e.matches ? 'dark' : 'light'));

const colors: Record<Theme, string[]> = {
  light: ['#1f66b1', '#c4500a', '#0b8066', '#b0478b', '#8a6a00', '#2a8fc0', '#5f4bb6', '#5b5f66'],
  dark: ['#6db1f2', '#f2894b', '#3fc49b', '#e58cc3', '#e3c04b', '#7fd4f0', '#aa9bf5', '#b4b8bf'],
};

const dashes = [[], [7, 4], [2, 3]];

export function lineColor(i: number, t: Theme): string {
  return colors[t][i % 8] ?? 'gray';
}

export function lineDash(i: number): number[] {
  return dashes[Math.floor(i / 8) % 3] ?? [];
}

/** What the canvas needs to know of the style sheet. */
export const canvas: Record<Theme, { text: string; grid: string; edge: string }> = {
  light: { text: '#6a675f', grid: '#1d1c1a12', edge: '#1d1c1a2e' },
  dark: { text: '#9a9da3', grid: '#ffffff12', edge: '#ffffff30' },
};
