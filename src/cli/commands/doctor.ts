import { printable } from '../../protocol/printable.js';
import { targetOf } from '../connection.js';
import { hasColors, helpColumns } from '../terminal.js';
import { checks, diagnose, type Finding, skipped } from '../doctor.js';
import { ExitCode } from '../errors.js';
import { defineCommand, feedName, option, service, timeMs } from '../options.js';
import { writeResult, writeText } from '../delivery.js';
import { counted, type Line, printed, symbols } from '../text.js';

export const command = defineCommand({
  argument: feedName,
  summary: "find out why a feed doesn't work",
  description: `
    Checks Node, the settings, the proxy, DNS, TCP, TLS, the API key and the clock, and prints what's wrong and what to
    do. It requests one ticket. After a check that failed, it skips the rest.

    With --connect it also opens a connection, which kicks out any other client of the account (4001). Then it waits 10 s
    for another client and for the first frame.
  `,
  options: {
    ...service,
    connect: option('--connect', 'also open a connection'),
    frameWithin: option(
      '--frame-within <TIME>',
      'with --connect: how long the first frame may take (default: 10)',
      timeMs,
    ),
    json: option('--json', 'one JSON object with all findings'),
  },
  examples: [
    ['rx-trade-feed doctor', 'check everything up to the ticket'],
    ['rx-trade-feed doctor raw --connect --frame-within 30', 'also the connection, and the first frame of raw'],
    ['rx-trade-feed doctor --json | jq \'.checks[] | select(.status == "failed")\'', 'only the check that failed'],
  ],
  run: async (feed, values, context) => {
    const { stdout } = context;
    const names = [...checks];
    const findings: NamedFinding[] = [];
    for await (const finding of diagnose(feed, values, context)) {
      const named = { name: names.shift() as string, ...finding };
      findings.push(named);
      if (!values.json) await writeText(context, findingText(named, hasColors(stdout, context)), helpColumns);
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

/** Says what was found, and below it what to do. */
export const findingText = ({ name, status, text, advice }: NamedFinding, hasColors: boolean): string => {
  const [symbol, style] = marks[status];
  const head: Line = [
    [` ${symbol} ${status.padEnd(statusWidth)}`, style],
    [name.padEnd(nameWidth), 'bold'],
    [printable(text)],
  ];
  const below = advice === undefined ? '' : `${' '.repeat(3 + statusWidth + nameWidth)}→ ${printable(advice)}\n`;
  return `${printed(head, Infinity, hasColors)}\n${below}`;
};

export const conclusion = (findings: readonly Finding[]): string => {
  const number = (status: Finding['status']): number => findings.filter((each) => each.status === status).length;
  if (number('failed') > 0) return "The feed can't work. The remaining checks were skipped.";
  const warnings = number('warning');
  return warnings === 0 ? 'No problems found.' : `The feed works, with ${counted(warnings, 'warning')}.`;
};
