// The figures of the landing page. They are read from the tables of the guides, which the benchmarks and long checks write.
import { readFileSync } from 'node:fs';

const read = (page) => readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), 'utf8');

/** Returns the cells of the first table row that begins with these cells. */
const rowOf = (text, ...first) => {
  const rows = text.split('\n').filter((line) => line.startsWith('|'));
  const cells = rows.map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
  const found = cells.find((row) => first.every((cell, n) => row[n] === cell));
  if (found === undefined) throw new Error(`No table has the row ${first.join(' | ')}.`);
  return found;
};

const numberOf = (cell) => {
  const number = Number(cell.replaceAll(' ', ''));
  if (!Number.isFinite(number)) throw new Error(`${cell} is not a number.`);
  return number;
};

/** Returns the part of a guide that a check has written. */
const writtenBy = (text, mark) => text.split(`<!-- ${mark} -->`)[1].split('<!-- /')[0];

// A number is not broken into two lines.
const grouped = (number) => String(number).replaceAll(/\B(?=(\d{3})+$)/g, '\u00a0');

/** Returns three promises: a figure, what it is, and where it comes from. */
export const promises = (performance = read('performance'), reliability = read('reliability')) => {
  const [, ws, , ours] = rowOf(writtenBy(performance, 'bench:opening'), 'plain, 200 B');
  const chaos = writtenBy(reliability, 'reliability:chaos');
  const [, , violations] = rowOf(chaos, 'violations of the ten rules');
  const [counts] = [...chaos.matchAll(/^\| +episodes .*\n\|[-:| ]+\n\|(.*)\|$/gm)].map(([, row]) => row.split('|'));
  const soak = rowOf(writtenBy(reliability, 'reliability:soak'), 'sent = received + missed in gaps')[2];
  const [sent, received, missed] = soak.split(/[=+]/).map((cell) => numberOf(cell.trim()));
  if (sent !== received + missed) throw new Error(`The soak run lost frames without a gap: ${soak}.`);
  return [
    {
      figure: `${(numberOf(ws) / numberOf(ours)).toFixed(1)}×`,
      title: 'Cheap frames',
      text: `ws takes ${(numberOf(ws) / numberOf(ours)).toFixed(1)} times as much CPU time as this library for a frame of 200 bytes.`,
      link: '/performance',
    },
    {
      figure: grouped(numberOf(counts[5].trim())),
      title: 'Careful reconnects',
      text: `reconnects under random faults, with ${violations} violations of the ten rules.`,
      link: '/reliability#chaos',
    },
    {
      figure: `${Math.round(sent / 1e6)} million`,
      title: 'Every loss reported',
      text: `frames in a soak run. ${grouped(missed)} of them were missed in outages, and gaps report exactly that number.`,
      link: '/reliability#soak',
    },
  ];
};
