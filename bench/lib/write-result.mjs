// Writes a result to files: JSON with the figures, and one SVG for each chart.
import { readFileSync, writeFileSync } from 'node:fs';
import { folderOf, root } from './root.mjs';

// The title, the alternative text and the place of a chart, without its points.
const textOf = ({ id, title, alt, opens }) => ({ id, title, ...(alt && { alt }), ...(opens && { opens }) });

/**
 * Writes `<results>/<name>.json`, and `<charts>/<id>.svg` for each chart. The JSON has the title of a chart, not its points.
 *
 * @param name - a file name
 * @param result - the figures; `charts` are drawn
 * @param folders - `{ results, charts }`, paths below the root that end in `/`
 * @returns a promise of the path of the JSON file
 */
export const writeResult = async (name, result, { results, charts }) => {
  const figures = { ...result, charts: result.charts.map(textOf) };
  writeFileSync(new URL(`${name}.json`, folderOf(results)), `${JSON.stringify(figures, undefined, 2)}\n`);
  // Observable Plot adds about 30 MB to the process, so it is loaded after the measurement.
  const { svg } = await import('./svg.mjs');
  for (const chart of result.charts) writeFileSync(new URL(`${chart.id}.svg`, folderOf(charts)), svg(chart));
  return `${results}${name}.json`;
};

/** Returns a written result, or `undefined` if there is none. */
export const readWritten = (name, { results }) => {
  try {
    return JSON.parse(readFileSync(new URL(`${results}${name}.json`, root), 'utf8'));
  } catch {
    return undefined;
  }
};
