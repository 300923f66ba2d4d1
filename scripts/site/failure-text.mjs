// The generated parts of the pages about failure codes, from the failure tables of the library.
import { readdirSync } from 'node:fs';
import { fillBetween } from '../../bench/lib/fill.mjs';
import { table } from '../../bench/lib/table.mjs';

const folder = new URL('../../docs/failures/', import.meta.url);

/** Returns the codes that have a page, sorted. */
export const documentedCodes = () =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => name.slice(0, -'.md'.length))
    .sort();

const reactions = {
  stop: "The Observable errors. It doesn't try again until you subscribe again.",
  renew: 'The feed takes a fresh ticket and reconnects: at once after a stable connection, otherwise with backoff.',
  wait: 'The feed waits as long as the service asks in `Retry-After`, then takes a fresh ticket.',
  backoff: 'The feed waits, longer each time and with jitter. Then it takes a fresh ticket.',
};
const relayReactions = {
  stop: 'The Observable errors.',
  renew: 'The client connects to the relay again: at once after a stable connection, otherwise with backoff.',
  backoff: 'The client waits, longer each time and with jitter. Then it connects to the relay again.',
};
const logReactions = {
  stop: 'The Observable errors with a `LogError`. Nothing is tried again until you subscribe again.',
  backoff: 'It is the reason of a `gap`, or of a `disconnected`, that the log adds. Readers continue.',
};
const stages = { ticket: 'at the ticket request', handshake: 'at the handshake', stream: 'on the open stream' };

const isOfRelay = (code) => code.includes('relay');
const isOfLog = (code) => /^(log-|consumer-)/.test(code);
const reactionsTo = (code) => (isOfLog(code) ? logReactions : isOfRelay(code) ? relayReactions : reactions);

/**
 * Returns what a row of a failure table matches: `HTTP 429`, `close 4001`, or a dash if the client itself detects the failure.
 *
 * @param meanings - the table: other rows of it may match the same close code with a reason
 */
const seenIn = ({ status, closeCode, reason, certificate }, meanings) => {
  if (certificate !== undefined) return { date: 'its dates', host: 'its host' }[certificate];
  if (status !== undefined) return status === 'other' ? 'HTTP, any other' : `HTTP ${status}`;
  if (closeCode === undefined) return '–';
  if (closeCode === 'other') return 'close, any other';
  if (reason !== undefined) return `close ${closeCode} \`${reason}\``;
  const isRest = meanings.some((row) => row.closeCode === closeCode && row.reason !== undefined);
  return `close ${closeCode}${isRest ? ', any other reason' : ''}`;
};

const stageOf = ({ code, stage }) => {
  if (stage === undefined) return 'at any time';
  return isOfRelay(code)
    ? stage === 'handshake'
      ? 'at the request to the relay'
      : 'on the open stream'
    : stages[stage];
};

const verdictOf = ({ verdict, afterOpened }) => `\`${verdict}\`${afterOpened ? `, later \`${afterOpened}\`` : ''}`;

/** Returns what the feed does, and what it does once a connection of the subscription has opened. */
const nextOf = ({ code, verdict, afterOpened }) => {
  const [first, later] = [verdict, afterOpened].map((each) => reactionsTo(code)[each]);
  return later === undefined
    ? first
    : `${first} Once a connection of the subscription has opened, ${later.replace(/^T/, 't')}`;
};

const linesOf = (group, meanings) => {
  const { meaning, advice } = group[0];
  const rows = group.map((row) => [seenIn(row, meanings), stageOf(row), verdictOf(row)]);
  return [
    table(['seen', 'when', 'verdict'], rows),
    `**What happened.** ${meaning}`,
    `**What happens next.** ${nextOf(group[0])}`,
    `**Advice.** ${advice}`,
  ].join('\n\n');
};

/** Returns the generated part of the page of a code: one block for all rows with the same meaning. */
const failureText = (code, meanings) => {
  const rows = meanings.filter((row) => row.code === code);
  const keyOf = ({ verdict, meaning }) => `${verdict} ${meaning}`;
  const groups = [...new Set(rows.map(keyOf))].map((key) => rows.filter((row) => keyOf(row) === key));
  return groups.map((group) => linesOf(group, meanings)).join('\n\n');
};

/** Returns the heading of the page of a code, with the statuses and close codes that only this code has. */
const failureHeading = (code, meanings) => {
  const own = meanings.filter((row) => row.code === code);
  const numbers = own.map(({ status, closeCode }) => status ?? closeCode).filter((value) => typeof value === 'number');
  const kind = own.some(({ closeCode }) => closeCode !== undefined) ? 'close' : 'HTTP';
  const shown = [...new Set(numbers)];
  return shown.length === 1 && own.length === 1 ? `\`${code}\` (${kind} ${shown[0]})` : `\`${code}\``;
};

const linkTo = (code) => `[\`${code}\`](${code}.md)`;

/** Returns the table in which a reader looks up a status or a close code: the rows that match one. */
const failureLookup = (meanings) =>
  table(
    ['seen', 'when', 'code', 'verdict'],
    meanings
      .filter(({ status, closeCode }) => status !== undefined || closeCode !== undefined)
      .map((row) => [seenIn(row, meanings), stageOf(row), linkTo(row.code), `\`${row.verdict}\``]),
  );

/** Returns what each code of a failure table says, as a list with links to the pages of the codes. */
const failureList = (meanings) => {
  const items = meanings.map((row) => `- ${linkTo(row.code)}, ${verdictOf(row)}: ${row.meaning} ${row.advice}`);
  return [...new Set(items)].join('\n');
};

/** Returns a text in which the part between two marks is replaced. */
export const withPart = (text, mark, part) => fillBetween(text, `<!-- ${mark} -->`, `<!-- /${mark} -->`, part);

/** Returns the last line of the page of a code: the one next step. */
const nextStep = (code, meanings) => {
  if (code === 'connection-replaced') return '[share one connection](../sharing.md) in your process.';
  if (isOfRelay(code)) return '[see what a page does when it reconnects](../relay.md#when-the-page-reconnects).';
  if (/^(cluster|engine|owner)-/.test(code)) return 'see how replicas behave (`docs/replicas.md`).';
  if (code.startsWith('receiver-')) return '[keep a busy process reading](../slow-consumers.md#a-stalled-process).';
  return meanings.find((row) => row.code === code).verdict === 'stop'
    ? 'run `npx rx-trade-feed doctor`. It checks everything from Node to the ticket, and says what to fix.'
    : '[choose how long the feed waits](../reconnecting.md) before it tries again.';
};

/** Returns the page of a code with its generated parts. */
export const failurePage = (text, code, meanings) => {
  const page = text
    .replace(/^# .+$/m, `# ${failureHeading(code, meanings)}`)
    .replace(/\n*(?:\*\*Next:\*\* .+\n)?$/, `\n\n**Next:** ${nextStep(code, meanings)}\n`);
  return withPart(page, 'failure', failureText(code, meanings));
};

const ofStage = (meanings, stage) => meanings.filter((row) => row.stage === stage);

/** Returns the page that lists all codes, with its generated parts. */
export const failureIndex = (text, { service, relay, worker, cluster, log }) => {
  const parts = {
    ...Object.fromEntries(Object.keys(stages).map((stage) => [stage, ofStage(service, stage)])),
    any: ofStage(service, undefined),
    ...{ relay, worker, cluster, log },
  };
  const lookup = withPart(text, 'lookup', failureLookup([...service, ...relay]));
  return Object.entries(parts).reduce((page, [mark, meanings]) => withPart(page, mark, failureList(meanings)), lookup);
};
