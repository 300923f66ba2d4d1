import { endWith, filter, firstValueFrom, ignoreElements, interval, merge, of, take, tap } from 'rxjs';
import type { Replayed, ReplayProgress } from '../../index.js';
import type { ReplayCommand } from '../arguments/parsed-command.js';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$, exitCodeOfEnding } from '../follow/ending.js';
import type { Ending } from '../follow/event.js';
import { tickMs } from '../follow/follow.js';
import { formatFor } from '../output/format.js';
import { written } from '../output/line-writer.js';
import { pacedReplay$ } from '../replay/paced-replay.js';
import { emptyReplayTally, replaySummary, replayTallied, tornWords } from '../replay/replay-tally.js';
import { replayView } from '../replay/replay-view.js';
import { logLine } from '../view/views.js';

/** How long an interrupted command waits for a slow reader of stdout, in ms. */
const lastFlushMs = 1_000;

/**
 * Writes the frames of a recording to stdout, and shows the progress on stderr.
 *
 * @returns the exit code
 * @throws RecordingError when the recording cannot be read, or a CliError
 */
export const replay = async ({ file, options }: ReplayCommand, context: CliContext): Promise<number> => {
  const { count = Infinity, offset = 0, speed, quiet } = options;
  const { stdout, stderr } = context;
  const format = formatFor(options, context);
  const view = replayView(options, context);
  let tally = emptyReplayTally(offset);

  const write = (event: Replayed): void => {
    // The tally contains only events that stdout has accepted, so a later replay from its offset skips none.
    stdout.write(format(asRecorded(event)) ?? '', (error) => {
      if (!error) tally = replayTallied(tally, event);
    });
  };
  const onProgress = ({ totalBytes, torn }: ReplayProgress): void => {
    tally = { ...tally, totalBytes, torn };
  };
  const finished: Ending = { kind: 'count-reached' };
  const ending = await firstValueFrom(
    merge(
      endings$(context),
      interval(tickMs).pipe(
        tap(() => view.show(tally)),
        ignoreElements(),
      ),
      pacedReplay$(file, { offset, speed, onProgress }, stdout, write).pipe(
        filter((event) => event.type === 'frame'),
        take(count),
        ignoreElements(),
        endWith(finished),
      ),
    ),
  ).finally(() => view.close());

  await written(stdout, of(undefined), ending.kind === 'interrupted' ? lastFlushMs : undefined);
  const last = endingOf(stdout) ?? ending;
  if (!quiet) {
    for (const words of [replaySummary(tally, last), tornWords(tally)])
      if (words !== undefined) stderr.write(isTerminal(stderr, context) ? `${words}\n` : logLine(Date.now(), words));
  }
  if (last.kind === 'failed') throw last.error;
  // A recording has an end, so an interrupted replay is incomplete: pass a bound.
  return exitCodeOfEnding(last, { count }, { connections: 0 });
};

/** Removes the offset, which is not part of a recording. */
const asRecorded = (event: Replayed) => {
  if (event.type === 'frame') return event;
  const { type, from, to, durationMs, failure } = event;
  return { type, from, to, durationMs, failure };
};
