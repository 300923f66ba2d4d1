import { Help } from 'commander';
import { printable } from '../../protocol/printable.js';
import { targetOf } from '../connection.js';
import { hasColors, isTerminal } from '../context.js';
import { checks, diagnose, type Finding, skipped } from '../doctor.js';
import { ExitCode } from '../errors.js';
import { defineCommand, feedArgument, flag, option, service, timeMs } from '../options.js';
import { writeResult, writeText } from '../delivery.js';
import { sizeOf } from '../view/terminal.js';
import { counted, type Line, printed, symbols } from '../view/text.js';

/** The width of the report in columns; a terminal can make it narrower. */
const [plainColumns, maxColumns] = [80, 100];

export const command = defineCommand({
  argument: feedArgument,
  summary: "find out why a feed doesn't work",
  description: `
    Checks Node, the settings, the proxy, DNS, TCP, TLS, the API key and the clock, and prints what's wrong and what to
    do. It requests one ticket. After a check that failed, it skips the rest.

    With --connect it also opens a connection, and waits 10 s for another client of the account and for the first frame.
    A new connection kicks out any other client of the account (4001), so doctor doesn't open one without --connect.
  `,
  options: {
    ...service,
    connect: flag('--connect', 'open a connection, which kicks out any other client of the account'),
    frameWithin: option(
      '--frame-within <TIME>',
      timeMs,
      'with --connect: how long the first frame may take (default: 10)',
    ),
    json: flag('--json', 'one JSON object with all findings'),
  },
  examples: [
    ['rx-trade-feed doctor', 'check everything up to the ticket'],
    ['rx-trade-feed doctor raw --connect --frame-within 30', 'also the connection, and the first frame of raw'],
    ['rx-trade-feed doctor --json | jq \'.checks[] | select(.status == "failed")\'', 'only the check that failed'],
  ],
  run: async (feed, values, context) => {
    const { stdout } = context;
    const colors = hasColors(stdout, context);
    const width = isTerminal(stdout, context) ? sizeOf(stdout).columns : plainColumns;
    const columns = Math.min(width, maxColumns) - 1;
    const names = [...checks];
    const findings: NamedFinding[] = [];
    for await (const finding of diagnose(feed, values, context)) {
      const named = { name: names.shift() as string, ...finding };
      findings.push(named);
      if (!values.json) await writeText(context, `${findingLines(named, columns, colors).join('\n')}\n`);
      if (finding.status === 'failed') break;
    }
    const failure = findings.find(({ status }) => status === 'failed');
    for (const name of names) findings.push({ name, ...skipped(`after the failure of ${failure?.name}`) });
    const exitCode = failure?.exitCode ?? ExitCode.ok;
    const hasSettings = findings.some(({ name, status }) => name === 'settings' && status === 'ok');
    const baseUrl = hasSettings ? new URL(targetOf(values, context).baseUrl as string).href : undefined;
    const report = { baseUrl, feed, exitCode, checks: findings.map(({ exitCode: _, ...rest }) => rest) };
    await writeResult(context, values.json, report, [conclusion(findings)]);
    return exitCode;
  },
});

interface NamedFinding extends Finding {
  readonly name: string;
}

const marks = {
  ok: symbols.good,
  warning: symbols.warning,
  failed: symbols.failed,
  skipped: symbols.inactive,
} as const;

const [statusWidth, nameWidth] = [9, 14];
const textColumn = 3 + statusWidth + nameWidth;
/** A narrower terminal shows the text below the name of the check. */
const minColumns = 50;

/** Wraps a finding with a hanging indent: what was found, then what to do. */
export const findingLines = (
  { name, status, text, advice }: NamedFinding,
  columns: number,
  hasColors: boolean,
): readonly string[] => {
  const isNarrow = columns < minColumns;
  const indent = isNarrow ? 4 : textColumn;
  const body = [
    ...wrapped(text, columns - indent),
    ...(advice === undefined
      ? []
      : wrapped(advice, columns - indent - 2).map((line, n) => `${n ? '  ' : '→ '}${line}`)),
  ];
  const [symbol, style] = marks[status];
  const head: Line = [
    [` ${symbol} ${status.padEnd(statusWidth)}`, style],
    [name.padEnd(nameWidth), 'bold'],
  ];
  const [first = '', ...rest] = isNarrow ? ['', ...body] : body;
  const lines: readonly Line[] = [[...head, [first]], ...rest.map((line): Line => [[' '.repeat(indent)], [line]])];
  return lines.map((line) => printed(line, Infinity, hasColors));
};

// Keeps a word that's too long for a line whole: it may be an address that somebody wants to copy.
const wrapped = (text: string, columns: number): readonly string[] =>
  help.boxWrap(printable(text), columns).split('\n');
const help = Object.assign(new Help(), { minWidthToWrap: 1 });

export const conclusion = (findings: readonly Finding[]): string => {
  const number = (status: Finding['status']): number => findings.filter((each) => each.status === status).length;
  if (number('failed') > 0) return "The feed can't work. The remaining checks were skipped.";
  const warnings = number('warning');
  return warnings === 0 ? 'No problems found.' : `The feed works, with ${counted(warnings, 'warning')}.`;
};
