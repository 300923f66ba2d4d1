import { asyncScheduler, defer, EMPTY, endWith, filter, firstValueFrom, fromEvent, ignoreElements } from 'rxjs';
import { interval, merge, type Observable, repeat, switchMap, take, takeWhile, tap, timer } from 'rxjs';
import { type Replayed, replay$, type ReplayOptions, type ReplayProgress } from '../../index.js';
import { clampMs } from '../../protocol/validate.js';
import { type CliContext, isTerminal, type Output } from '../context.js';
import { type Ending, endingOf, endings$, finish, type Status, statusAfter, statusAt, tickMs } from '../follow.js';
import { argument, count, defineCommand, flag, integer, option, output, speed, type ValuesOf } from '../options.js';
import { formatFor, lastFlushMs, written } from '../output.js';
import { progressEveryMs } from '../view/status.js';
import { lineView, type Look } from '../view/terminal.js';
import { bytes, count as whole, counted, joined, logLine } from '../view/text.js';

const options = {
  speed: option('--speed <N|max>', speed, 'a multiple of the recorded speed; max: as fast as possible (default: 1)'),
  offset: option('--offset <N>', integer(0), 'continue from an offset that an earlier replay printed'),
  count,
  json: flag('--json', 'one JSON object per line: frames with metadata, and gaps in between'),
  ...output,
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: argument<string>('<file>', 'the recording'),
  summary: 'write the frames of a recording to stdout, one per line',
  description: `
    Reads a file of record, recordTo or listen --json, then FILE.1, FILE.2 and so on. Writes the frames as listen does,
    with the recorded intervals. If the reader of stdout is slow, the replay waits for it.

    At the end it prints the offset after the last line that stdout accepted. A later replay can continue from this
    offset.
  `,
  options,
  examples: [
    ['rx-trade-feed replay market.ndjson | jq .', 'at the recorded speed'],
    ['rx-trade-feed replay market.ndjson --speed max --json', 'everything at once, with metadata and gaps'],
  ],
  run: async (file, values, context) => {
    const { stdout, stderr } = context;
    const progress: Progress = { status: undefined, offset: values.offset ?? 0, totalBytes: 0, torn: undefined };
    const ending = await replayed(file, values, context, progress);
    await written(stdout, ending.kind === 'interrupted' ? lastFlushMs : undefined);
    const last = endingOf(stdout) ?? ending;
    const { torn } = progress;
    const lost = torn && `${counted(torn.bytes, 'byte')} at byte ${torn.at} were skipped, and its frame or gap is lost`;
    const texts = [summaryOf(progress, last), ...(lost ? [`The last line of the recording is torn: ${lost}.`] : [])];
    for (const text of values.quiet ? [] : texts)
      stderr.write(isTerminal(stderr, context) ? `${text}\n` : logLine(text));
    // A recording has an end, so an interrupted replay is incomplete: pass a bound.
    return finish(last, { count: values.count ?? Infinity }, false);
  },
});

/**
 * What stdout has accepted, so that a later replay from its offset skips nothing.
 *
 * The times of the status are those of the recording; there is none before the first event. `torn`: the last line, if it
 * is torn and the replay has reached it.
 */
interface Progress extends Pick<ReplayProgress, 'totalBytes' | 'torn'> {
  status: Status | undefined;
  offset: number;
}

const replayed = (file: string, values: Values, context: CliContext, progress: Progress): Promise<Ending> => {
  const { stdout } = context;
  const format = formatFor(values, context);
  const view = lineView(values, context, progressLook);
  const write = (event: Replayed): void => {
    stdout.write(format(asRecorded(event)) ?? '', (error) => {
      if (error) return;
      progress.status = statusAfter(progress.status ?? statusAt('market', timeOf(event)), event);
      progress.offset = event.offset;
    });
  };
  const onProgress = ({ totalBytes, torn }: ReplayProgress) => Object.assign(progress, { totalBytes, torn });
  const finished: Ending = { kind: 'count-reached' };
  return firstValueFrom(
    merge(
      endings$(context),
      interval(tickMs).pipe(
        tap(() => view.show(progress)),
        ignoreElements(),
      ),
      pacedReplay$(file, { offset: values.offset, speed: values.speed, onProgress }, stdout, write).pipe(
        filter((event) => event.type === 'frame'),
        take(values.count ?? Infinity),
        ignoreElements(),
        endWith(finished),
      ),
    ),
  ).finally(view.close);
};

const asRecorded = (event: Replayed) => {
  if (event.type === 'frame') return event;
  const { type, from, to, durationMs, failure } = event;
  return { type, from, to, durationMs, failure };
};

const maxWaitingBytes = 1024 * 1024;

/**
 * Replays a recording, but never faster than the output accepts it. When too many bytes wait, it unsubscribes from the
 * replay, and later continues from its offset. The recorded intervals are kept across the pause, unless the output was
 * slower.
 *
 * @param write - writes an event to the output
 */
const pacedReplay$ = (
  file: string,
  options: ReplayOptions,
  output: Output,
  write: (event: Replayed) => void,
): Observable<Replayed> =>
  defer(() => {
    let last: { readonly event: Replayed; readonly writtenAt: number } | undefined;
    let isPaused = false;
    const writeAndCheck = (event: Replayed): boolean => {
      write(event);
      isPaused = output.writableLength > maxWaitingBytes;
      if (isPaused) last = { event, writtenAt: asyncScheduler.now() };
      return !isPaused;
    };
    const { speed = 1 } = options;
    const rest$ = (): Observable<Replayed> => {
      isPaused = false;
      if (last === undefined) return replay$(file, options);
      const { event, writtenAt } = last;
      const { offset } = event;
      const more$ = replay$(file, { ...options, offset });
      if (speed === Infinity) return more$;
      // A replay emits its first event immediately, so the recorded interval before that event is waited for here.
      return replay$(file, { ...options, speed: Infinity, offset }).pipe(
        take(1),
        switchMap((next) => {
          const dueAt = writtenAt + Math.max(0, timeOf(next) - timeOf(event)) / speed;
          return timer(clampMs(Math.max(0, dueAt - asyncScheduler.now())));
        }),
        switchMap(() => more$),
      );
    };
    return defer(rest$).pipe(
      takeWhile(writeAndCheck, true),
      repeat({ delay: () => (isPaused ? fromEvent(output, 'drain').pipe(take(1)) : EMPTY) }),
    );
  });

const timeOf = (event: Replayed): number => (event.type === 'frame' ? event.receivedAt : event.to);

const progressLook: Look<Progress> = {
  lines: (progress) => [[[progressWords(progress)]]],
  logEveryMs: progressEveryMs,
  log: (progress, isDue) => (isDue ? [progressWords(progress)] : []),
};

/** `42% · 1,842 frames · no gaps · 2026-01-01T00:00:00.000Z` */
const progressWords = ({ status, offset, totalBytes }: Progress): string => {
  const { frames, gaps } = totalsOf(status);
  const percent = totalBytes === 0 ? 0 : Math.min(100, Math.floor((offset * 100) / totalBytes));
  const lost = gaps === 0 ? 'no gaps' : counted(gaps, 'gap');
  return joined(' · ', `${percent}%`, counted(frames, 'frame'), lost, status && timeWords(status.now));
};

/**
 * Returns the summary of a replay, with the offset from which another replay can continue. If the reader of stdout has
 * exited, the offset is unknown, because the reader may not have read all data that stdout accepted.
 */
const summaryOf = ({ status, offset }: Progress, { kind }: Ending): string => {
  const { frames, bytes: total, gaps } = totalsOf(status);
  return joined(
    '; ',
    `${counted(frames, 'frame')}, ${bytes(total)}`,
    `gaps: ${gaps === 0 ? 'none' : whole(gaps)}`,
    status && `recorded from ${timeWords(status.startedAt)} to ${timeWords(status.now)}`,
    kind === 'output-closed' ? 'the reader of stdout has exited' : `continue with --offset ${offset}`,
  );
};

const totalsOf = (status: Status | undefined) => ({
  frames: status?.frames ?? 0,
  bytes: status?.bytes ?? 0,
  gaps: status?.life.totals.gaps ?? 0,
});

const timeWords = (ms: number): string => new Date(ms).toISOString();
