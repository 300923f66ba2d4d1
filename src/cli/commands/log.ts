import { firstValueFrom, map, merge } from 'rxjs';
import { inspectLog, type LogCheck, type LogProgress, type LogStatus, verifyLog } from '../../log/index.js';
import { printable } from '../../protocol/printable.js';
import { CliError, ExitCode, usageError } from '../errors.js';
import { argument, defineCommand, option, output, type ValuesOf } from '../options.js';
import { writeResult } from '../delivery.js';
import { type CliContext, lineView } from '../terminal.js';
import { bytes, count, counted, duration, factLines, joined, type Line } from '../text.js';

const options = {
  verify: option('--verify', 'also check the checksum of every line'),
  json: option('--json', 'write the result as one JSON object'),
  ...output,
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: argument<readonly string[]>('<action...>', 'status FOLDER'),
  usage: 'status [options] <FOLDER>',
  summary: 'show a log and its consumers, and check every line',
  description: `
    status shows the files of a log, its times, its writer, and how far each consumer is behind. With --verify it also
    reads every line, names the file and the line of each damage, and ends with 5 if there is any. It also reads a file
    of listen --json.
  `,
  options,
  examples: [
    ['rx-trade-feed log status market', 'the files and the consumers'],
    ['rx-trade-feed log status market --verify --json', 'also check every line, for a script'],
  ],
  run: async ([action, path, ...rest], values, context) => {
    if (action !== 'status' || path === undefined || rest.length > 0)
      throw usageError('log has one action, and it needs one folder: rx-trade-feed log status FOLDER.');
    const status = await inspectLog(path);
    const check = values.verify ? await checkOf(path, values, context) : undefined;
    const { damaged, tornBytes } = check ?? {};
    const lines = [...statusText(status, Date.now()), ...(check ? checkText(check) : [])];
    await writeResult(context, values.json, { ...status, damaged, tornBytes }, lines);
    if (damaged === undefined || damaged.length === 0) return ExitCode.ok;
    throw new CliError(
      ExitCode.wrong,
      `${counted(damaged.length, 'line')} of ${path} can't be read. Check the disk. Readers go on after damage with the option onDamage: 'gap'.`,
    );
  },
});

const checkOf = (path: string, values: Values, context: CliContext): Promise<LogCheck> => {
  const view = lineView(values, context, progressLine);
  const signalled$ = context.interrupt$.pipe(
    map((signal): never => {
      throw new CliError(ExitCode.interrupted, `${signal} came before every line was checked.`);
    }),
  );
  return firstValueFrom(merge(verifyLog(path, view.show), signalled$)).finally(view.close);
};

/** The oldest file and the newest ones. */
const shownFiles = 12;

export const statusText = (status: LogStatus, now: number): readonly string[] => {
  const { path, line, segments, offset, end, frames, from, to, writer, consumers } = status;
  const hidden = Math.max(0, segments.length - shownFiles);
  const files = segments
    .filter((_, n) => n === 0 || n > hidden)
    .map(({ problem = '', ...each }) => {
      const offsets = `${bytes(each.bytes)}  ${each.offset} to ${each.end}${time(each.from, ', from ')}`;
      return joined(', ', offsets, problem);
    });
  if (hidden > 0) files.splice(1, 0, `${count(hidden)} more`);
  return factLines([
    ['log', `${printable(path)}${line === undefined ? '' : `, id ${line}`}`],
    ['records', `${count(end - offset)} (${offset} to ${end}), ${counted(frames, 'frame')}, ${bytes(status.bytes)}`],
    ['times', from === undefined ? 'none' : `${time(from)} to ${time(to)}`],
    ['writer', writerText(writer, now)],
    ['files', ...orNone(files)],
    ['consumers', ...orNone(consumers.map(consumerText))],
  ]);
};

const orNone = (lines: readonly string[]): readonly string[] => (lines.length === 0 ? ['none'] : lines);

const time = (ms: number | undefined, before = ''): string =>
  ms === undefined ? '' : `${before}${new Date(ms).toISOString()}`;

const writerText = (writer: LogStatus['writer'], now: number): string => {
  if (writer === undefined) return 'none';
  const ago = `${duration(Math.max(0, now - writer.writtenAt))} ago`;
  if (writer.isRunning) return `process ${writer.pid}, written ${ago}`;
  return writer.closed ? `closed ${ago}` : `gone: process ${writer.pid} wrote ${ago}`;
};

const consumerText = ({ name, position, behind, behindMs, problem }: LogStatus['consumers'][number]): string => {
  if (problem !== undefined) return `${printable(name)}: ${printable(problem)}`;
  const where = position === undefined ? 'no commit yet' : `at ${position.offset}`;
  const late = behind === 0 ? 'up to date' : `${counted(behind, 'record')} behind, ${duration(behindMs)}`;
  return `${printable(name)}: ${joined(', ', where, late)}`;
};

/** `--json` has all. */
const shownDamage = 20;

const checkText = ({ damaged, tornBytes, records, frames, segments, bytes: read }: LogCheck): readonly string[] => [
  ...damaged
    .slice(0, shownDamage)
    .map(({ path, line, lineAt, problem }) => `${printable(path)}, line ${line} (byte ${lineAt}): ${problem}`),
  ...(damaged.length > shownDamage ? [`… and ${counted(damaged.length - shownDamage, 'line')} more`] : []),
  ...(tornBytes > 0
    ? [`the last line has ${counted(tornBytes, 'byte')} and no end: it is being written, or torn`]
    : []),
  `${counted(records, 'record')} in ${counted(segments.length, 'file')}, ${counted(frames, 'frame')}, ${bytes(read)}: ` +
    (damaged.length === 0 ? 'every line is valid' : counted(damaged.length, 'damaged line')),
];

const progressLine = ({ bytes: read, totalBytes, records }: LogProgress): Line => [
  [`${totalBytes === 0 ? 100 : Math.floor((read * 100) / totalBytes)}% · ${counted(records, 'record')}`],
];
