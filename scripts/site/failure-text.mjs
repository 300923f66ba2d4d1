// The generated parts of the pages about failures, from the failure tables of the library. A page has a section for each of its codes: the heading is
// the code, and the paragraph or list below it is generated.
import { readFileSync } from 'node:fs';
import { fillBetween } from '../../bench/lib/fill.mjs';
import { table } from '../../bench/lib/table.mjs';

/** The pages in `docs/failures`: a page for each stage. */
export const failurePageNames = ['ticket', 'handshake', 'stream', 'relay', 'cluster', 'log', 'receiver'];

const textOf = (page) => readFileSync(new URL(`../../docs/failures/${page}.md`, import.meta.url), 'utf8');

/** Returns the pages in the order of the stages: the name, the title, and the codes in the order of their sections. */
export const failurePages = () =>
  failurePageNames.map((name) => {
    const text = textOf(name);
    const [, title] = /^# (.+)$/m.exec(text);
    return { name, title, codes: [...text.matchAll(/^## (.+)$/gm)].map(([, code]) => code) };
  });

/** Returns the address of the section of each code, as a path from `docs`: `failures/log.md#log-behind`. */
export const failureAddresses = () =>
  Object.fromEntries(
    failurePages().flatMap(({ name, codes }) => codes.map((code) => [code, `failures/${name}.md#${code}`])),
  );

const continues = 'The code is in a `gap` or a `disconnected` event.';
const ofFeed = {
  stop: "The Observable errors. It doesn't try again until you subscribe again.",
  renew: 'The feed takes a fresh ticket and reconnects: at once after a stable connection, otherwise with backoff.',
  wait: 'The feed waits as long as the service asks in `Retry-After`, then takes a fresh ticket.',
  backoff: 'The feed waits, longer each time and with jitter. Then it takes a fresh ticket.',
};
const reactions = {
  relay: {
    stop: 'The Observable errors.',
    renew: 'The client connects to the relay again: at once after a stable connection, otherwise with backoff.',
    backoff: 'The client waits, longer each time and with jitter. Then it connects to the relay again.',
  },
  cluster: { stop: ofFeed.stop, renew: `The replica continues. ${continues}` },
  log: {
    stop: 'The Observable errors with a `LogError`. Nothing is tried again until you subscribe again.',
    backoff: `Readers continue. ${continues}`,
  },
};

/** Returns what the verdicts on a page mean, as a list. */
const verdictList = (meanings, page) => {
  const items = Object.entries(reactions[page] ?? ofFeed)
    .filter(([name]) => meanings.some(({ verdict, afterOpened }) => [verdict, afterOpened].includes(name)))
    .map(([name, text]) => `- \`${name}\`: ${text}`);
  const isLater = meanings.some(({ afterOpened }) => afterOpened !== undefined);
  const later = '- `stop`, later `backoff`: It stops, unless a connection of this subscription has opened before.';
  return [...items, ...(isLater ? [later] : [])].join('\n');
};

/**
 * Returns what a row of a failure table matches: `HTTP 429`, `close 4001`. Nothing if the client itself detects the failure.
 *
 * @param meanings - the table: other rows of it may match the same close code with a reason
 */
const seenIn = ({ status, closeCode, reason }, meanings) => {
  if (status !== undefined) return status === 'other' ? 'any other HTTP status' : `HTTP ${status}`;
  if (closeCode === undefined) return undefined;
  if (closeCode === 'other') return 'any other close code';
  if (reason !== undefined) return `close ${closeCode} \`${reason}\``;
  const isRest = meanings.some((row) => row.closeCode === closeCode && row.reason !== undefined);
  return `close ${closeCode}${isRest ? ' for another reason' : ''}`;
};

const rowsOf = (code, meanings) => meanings.filter((row) => row.code === code);

const seenInRows = (rows, meanings) => [...new Set(rows.map((row) => seenIn(row, meanings)))].filter(Boolean);

const verdictOf = ({ verdict, afterOpened }) => `\`${verdict}\`${afterOpened ? `, later \`${afterOpened}\`` : ''}`;

const lineOf = (rows, meanings) => {
  const [{ meaning, advice }] = rows;
  const seen = seenInRows(rows, meanings).join(', ');
  return `**${verdictOf(rows[0])}${seen && ` on ${seen}`}.** ${meaning} ${advice}`;
};

/** Returns the generated part of a section: a paragraph, or a list if rows of the code have several meanings. */
const failureText = (code, meanings) => {
  const rows = rowsOf(code, meanings);
  const keyOf = ({ verdict, meaning }) => `${verdict} ${meaning}`;
  const groups = [...new Set(rows.map(keyOf))].map((key) => rows.filter((row) => keyOf(row) === key));
  const lines = groups.map((group) => lineOf(group, meanings));
  return lines.length === 1 ? lines[0] : lines.map((line) => `- ${line}`).join('\n');
};

/** Returns a text in which the part between two marks is replaced. */
export const withPart = (text, mark, part) => fillBetween(text, `<!-- ${mark} -->`, `<!-- /${mark} -->`, part);

/** Returns the page of a stage with its generated parts. */
export const failurePage = (text, name, meanings) => {
  const page = text.replaceAll(
    /^## (.+)\n\n(?:.+\n)+/gm,
    (_, code) => `## ${code}\n\n${failureText(code, meanings)}\n`,
  );
  const codes = [...text.matchAll(/^## (.+)$/gm)].map(([, code]) => code);
  const ofPage = meanings.filter(({ code }) => codes.includes(code));
  return withPart(page, 'verdicts', verdictList(ofPage, name));
};

/** Returns the codes of a page with their links: a table of those with a status or a close code, and a list of the others. */
const codesOf = ({ name, title, codes }, meanings) => {
  const link = (code) => `[\`${code}\`](${name}.md#${code})`;
  const seenOf = (code) => seenInRows(rowsOf(code, meanings), meanings).join(', ');
  const [others, seen] = [true, false].map((isOther) => codes.filter((code) => (seenOf(code) === '') === isOther));
  const rows = seen.map((code) => [seenOf(code), link(code)]);
  const list =
    others.length > 0 && `${seen.length > 0 ? 'Noticed by this library: ' : ''}${others.map(link).join(', ')}.`;
  return [`### ${title}`, seen.length > 0 && table(['seen', 'code'], rows), list].filter(Boolean).join('\n\n');
};

/** Returns the page that lists all codes, with its generated parts. */
export const failureIndex = (text, meanings, pages = failurePages()) => {
  const page = withPart(text, 'verdicts', verdictList(meanings));
  return withPart(page, 'codes', pages.map((each) => codesOf(each, meanings)).join('\n\n'));
};
