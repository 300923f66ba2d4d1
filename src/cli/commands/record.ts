import { statSync } from 'node:fs';
import { tap } from 'rxjs';
import { RecordingError, recordTo, tradeFeedEvents$ } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import type { RecordCommand } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import { connectionOptions } from '../connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { endings$, finish, type Outcome, outcomeOf } from '../follow/ending.js';
import { follow } from '../follow/follow.js';
import { bytes, counted } from '../view/units.js';
import { logLine, noView, progressView, statusView, type View } from '../view/views.js';
import { summaryLine, summaryLines } from '../view/words.js';

/**
 * Records a feed to a file, and shows the status on stderr.
 *
 * @returns the exit code
 * @throws the failure that stopped the feed or the recording, or a CliError
 */
export const record = async ({ feed, options }: RecordCommand, context: CliContext): Promise<number> => {
  const { output, maxFileSize: maxFileBytes, count, duration: durationMs, quiet } = options;
  if (output === undefined) throw usageError('The file is missing. Use --output FILE.');
  if (output === '-') throw usageError('record writes to a file. To write to stdout, use listen --json.');
  const bounds = { count, durationMs };
  const events$ = tradeFeedEvents$(feed, await connectionOptions(options, context));
  const view = viewFor(options, output, context);

  const outcome = await outcomeOf(
    events$.pipe(
      recordTo(output, { maxFileBytes }),
      follow(feed, bounds, endings$(context)),
      tap((step) => view.show(step)),
    ),
  ).finally(() => view.close());
  if (!quiet && !wasRefused(outcome)) {
    const { stderr } = context;
    const size = recordingSize(output);
    if (isTerminal(stderr, context)) stderr.write(`${summaryLines(outcome.tally).join('\n')}\n  recording   ${size}\n`);
    else stderr.write(logLine(Date.now(), `${summaryLine(outcome.tally)}; recording: ${size}`));
  }
  return finish(outcome, bounds);
};

/** Returns whether the file could not be opened. Then there is no summary. */
const wasRefused = ({ ending, tally }: Outcome): boolean =>
  ending.kind === 'failed' && ending.error instanceof RecordingError && tally.connections === 0;

const viewFor = (options: RecordCommand['options'], output: string, context: CliContext): View => {
  if (options.quiet) return noView;
  return isTerminal(context.stderr, context) && options.status
    ? statusView(context, () => ` · ${recordingSize(output)}`)
    : progressView(context.stderr, () => recordingSize(output));
};

/** Describes the size of a recording: `1.2 MB in feed.ndjson`, `2.1 GB in 3 files`, `nothing was written`. Never throws. */
const recordingSize = (path: string): string => {
  const sizes = sizesOf(path);
  // A recording without a line has no file.
  if (sizes.length === 0) return 'nothing was written';
  const total = bytes(sizes.reduce((sum, size) => sum + size, 0));
  return `${total} in ${sizes.length > 1 ? counted(sizes.length, 'file') : printable(path)}`;
};

// `recordTo` reports errors of the file, so they are ignored here.
const sizesOf = (path: string): readonly number[] => {
  const sizes: number[] = [];
  try {
    for (;;) sizes.push(statSync(sizes.length === 0 ? path : `${path}.${sizes.length}`).size);
  } catch {
    return sizes;
  }
};
