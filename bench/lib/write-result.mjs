// What was measured, as files: JSON, and a chart each.
import { readFileSync, writeFileSync } from 'node:fs';
import { folderOf, root } from './root.mjs';
import { svg } from './svg.mjs';

/**
 * Writes `<results>/<name>.json` and `<charts>/<id>.svg` for each chart; gives the path of the JSON.
 *
 * @param name - a file name
 * @param result - all that is kept; its `charts` are drawn
 * @param folders - `{ results, charts }`, paths below the root that end in `/`
 */
export const writeResult = (name, result, { results, charts }) => {
  writeFileSync(new URL(`${name}.json`, folderOf(results)), `${JSON.stringify(result, undefined, 2)}\n`);
  for (const chart of result.charts) writeFileSync(new URL(`${chart.id}.svg`, folderOf(charts)), svg(chart));
  return `${results}${name}.json`;
};

/** What was written, or nothing. */
export const readWritten = (name, { results }) => {
  try {
    return JSON.parse(readFileSync(new URL(`${results}${name}.json`, root), 'utf8'));
  } catch {
    return undefined;
  }
};
