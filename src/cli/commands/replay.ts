import { firstValueFrom, fromEvent, ignoreElements, interval, merge, race, tap } from 'rxjs';
import type { Watermark } from '../../index.js';
import { feedLog, type FeedLog, type LogRecord } from '../../log/index.js';
import { fromRule } from '../../log/records.js';
import { timeOf } from '../../operators/items/item.js';
import { type Ending, endings$, lateAfter, written } from '../delivery.js';
import { type CliEvent, finish, type Status, statusAfter, statusAt, tickMs } from '../follow.js';
import { argument, count, defineCommand, option, output, parsed, placeIn, speed, type ValuesOf } from '../options.js';
import { type Format, formatFor } from '../output.js';
import { gapWords, totalWords } from '../status.js';
import { type CliContext, lineView, saySummary } from '../terminal.js';
import { bytes, counted, joined } from '../text.js';

const place = parsed(placeIn, {
  ...fromRule,
  allowed: 'an age such as 1h or 7d, a time such as 2026-01-31T12:00Z, an offset, earliest or latest',
});

const options = {
  from: option('--from <PLACE>', 'where to begin: 1h (ago), 2026-01-31T12:00Z, an offset, earliest or latest', place),
  speed: option('--speed <N|max>', 'a multiple of the recorded speed; max: as fast as possible (default: 1)', speed),
  follow: option('--follow', 'at the end, wait for more'),
  count,
  json: option('--json', 'one JSON object per line: frames with metadata, and gaps and events in between'),
  ...output,
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: argument<string>('<log>', 'a log of record, or a file of listen --json'),
  summary: 'write the frames of a log to stdout, one per line',
  description: `
    Writes the frames as listen does, with the recorded intervals. If the reader of stdout is slow, the replay waits for
    it. With --json each record has its offset, a number that never changes.

    With --follow it goes on with what record appends. At the end it prints the offset after the last record that stdout
    accepted, so that a later replay can continue there.
  `,
  options,
  examples: [
    ['rx-trade-feed replay market | jq .', 'at the recorded speed'],
    ['rx-trade-feed replay market --speed max --json', 'everything at once, with metadata and gaps'],
    ['rx-trade-feed replay market --from 1h --speed max --follow', 'the last hour, then live'],
  ],
  run: async (path, values, context) => {
    const { offset: next } = Object(values.from) as { readonly offset?: number };
    const progress: Progress = { status: undefined, next };
    const ending = await replayed(feedLog(path), values, context, progress);
    const broken = await written(context.stdout, lateAfter(ending));
    const last = broken ?? ending;
    const text = summaryOf(progress, last);
    const hasBegun = last.kind !== 'failed' || progress.status !== undefined;
    if (hasBegun && !values.quiet) saySummary(context, `${text}\n`, text);
    // A log that isn't followed has an end, so an interrupted replay is incomplete: pass a bound.
    return finish(last, { count: values.follow ? values.count : (values.count ?? Infinity) }, true);
  },
});

/** What stdout has accepted: the times of the status are those of the log; `next` is the offset after the last record. */
interface Progress {
  status: Status | undefined;
  next: number | undefined;
}

const replayed = (log: FeedLog, values: Values, context: CliContext, progress: Progress): Promise<Ending> => {
  const { from, speed: times = 1, follow = false } = values;
  const view = lineView(values, context, (shown: Progress) => [[progressWords(shown)]]);
  const shown$ = interval(tickMs).pipe(
    tap(() => view.show(progress)),
    ignoreElements(),
  );
  const batches = log.read({ from, speed: times, follow })[Symbol.asyncIterator]();
  const all = writeAll(batches, values, context, progress).then(
    (): Ending => ({ kind: 'count-reached' }),
    (error: unknown): Ending => ({ kind: 'failed', error }),
  );
  return firstValueFrom(merge(endings$(context), shown$, all)).finally(() => {
    view.close();
    return batches.return?.();
  });
};

/** Writes the records to stdout, and waits for a slow reader before it takes more. */
const writeAll = async (
  batches: AsyncIterator<readonly LogRecord[]>,
  { count: limit = Infinity, json }: Values,
  context: CliContext,
  progress: Progress,
): Promise<void> => {
  const { stdout } = context;
  const format = formatFor({ json }, context);
  let frames = 0;
  for (;;) {
    const batch = await batches.next();
    if (batch.done === true) return;
    for (const record of batch.value) {
      if (record.type === 'watermark') continue;
      stdout.write(lineOf(record, format, json), (error) => {
        if (!error) accept(progress, record);
      });
      if (record.type === 'frame' && (frames += 1) === limit) return;
    }
    if (stdout.writableNeedDrain) await firstValueFrom(race(fromEvent(stdout, 'drain'), fromEvent(stdout, 'close')));
  }
};

type Written = Exclude<LogRecord, Watermark>;

/** In JSON, the offset is first, as in the files of the log. A gap that the reader has found has none. */
const lineOf = (record: Written, format: Format, json = false): string | Uint8Array => {
  const { offset, position: _position, ...event } = record;
  // The only event that other commands don't show is `stopped`, written unchanged.
  const line = format((record.type === 'frame' ? record : event) as CliEvent) ?? '';
  return json && offset !== undefined ? `{"offset":${offset},${String(line).slice(1)}` : line;
};

const accept = (progress: Progress, record: Written): void => {
  const at = timeOf(record) as number;
  progress.status = statusAfter(progress.status ?? statusAt('market', at), record as CliEvent);
  progress.next = record.position?.offset ?? progress.next;
};

const nothing = statusAt('market', 0);

const progressWords = ({ status }: Progress): string =>
  joined(' · ', totalWords(status ?? nothing), status && timeWords(status.now));

/**
 * Returns the summary of a replay, with the offset from which another replay can continue. If the reader of stdout has
 * exited, the offset is unknown, because the reader may not have read all data that stdout accepted.
 */
const summaryOf = ({ status, next }: Progress, { kind }: Ending): string => {
  const { frames, bytes: total } = status ?? nothing;
  return joined(
    '; ',
    `${counted(frames, 'frame')}, ${bytes(total)}`,
    `gaps: ${gapWords(status ?? nothing)}`,
    status && `recorded from ${timeWords(status.startedAt)} to ${timeWords(status.now)}`,
    kind === 'output-closed' ? 'the reader of stdout has exited' : next !== undefined && `continue with --from ${next}`,
  );
};

const timeWords = (ms: number): string => new Date(ms).toISOString();
