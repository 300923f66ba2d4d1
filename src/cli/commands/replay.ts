import { endWith, filter, firstValueFrom, ignoreElements, interval, merge, of, take, tap } from 'rxjs';
import type { Replayed, ReplayProgress } from '../../index.js';
import type { ReplayCommand } from '../arguments/parse.js';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$ } from '../follow/endings.js';
import { exitCodeOfEnding } from '../follow/exit-code-of-ending.js';
import { tickMs } from '../follow/follow.js';
import type { Ending } from '../follow/happening.js';
import { formatFor } from '../output/format.js';
import { written } from '../output/written.js';
import { played$ } from '../replay/played.js';
import { emptyReplayTally, replaySummary, replayTallied, tornWords } from '../replay/replay-tally.js';
import { replayView } from '../replay/replay-view.js';
import { stamped } from '../view/stamped.js';

/** How long the end of an interrupted run waits for a slow reader of stdout, in ms. */
const lastFlushMs = 1_000;

/**
 * Writes the frames of a recording to stdout and tells on stderr how far it is, until its end.
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
    // What stdout has not taken is not behind it yet: the offset that is told at the end must not skip it.
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
      played$(file, { offset, speed, onProgress }, stdout, write).pipe(
        filter((event) => event.type === 'frame'),
        take(count),
        ignoreElements(),
        endWith(finished),
      ),
    ),
  ).finally(() => view.close());

  await written(stdout, of(undefined), ending.kind === 'interrupted' ? lastFlushMs : undefined);
  if (!quiet) {
    for (const words of [replaySummary(tally, endingOf(stdout) ?? ending), tornWords(tally)])
      if (words !== undefined) stderr.write(isTerminal(stderr, context) ? `${words}\n` : stamped(Date.now(), words));
  }
  const last = endingOf(stdout) ?? ending;
  if (last.kind === 'failed') throw last.error;
  // A recording has an end, so to interrupt its replay is to leave it half done.
  return exitCodeOfEnding(last, { count }, { connections: 0 });
};

/** Leaves out what a recording does not hold: the offset. */
const asRecorded = (event: Replayed) => {
  if (event.type === 'frame') return event;
  const { type, from, to, durationMs, failure } = event;
  return { type, from, to, durationMs, failure };
};
