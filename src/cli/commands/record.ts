import { tap } from 'rxjs';
import { RecordingError, recordTo, tradeFeedEvents$ } from '../../index.js';
import type { RecordCommand } from '../arguments/parse.js';
import { usageError } from '../cli-error.js';
import { connectionOptions } from '../client/connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { endings$ } from '../follow/endings.js';
import { follow } from '../follow/follow.js';
import { recordedWords } from '../record/recorded.js';
import { progressView } from '../view/progress-view.js';
import { stamped } from '../view/stamped.js';
import { statusView } from '../view/status-view.js';
import { summaryLine, summaryLines } from '../view/tally-words.js';
import { noView, type View } from '../view/view.js';
import { finish, type Outcome, outcomeOf } from './finish.js';

/**
 * Records a feed to a file and tells on stderr how it goes, until it ends.
 *
 * @returns the exit code
 * @throws the failure that stopped the feed or the recording, or a CliError
 */
export const record = async ({ feed, options }: RecordCommand, context: CliContext): Promise<number> => {
  const { output, 'max-file-size': maxFileBytes, count, duration: durationMs, quiet } = options;
  if (output === undefined) throw usageError('Where to? Give --output FILE.');
  if (output === '-') throw usageError('record writes a file; for stdout use listen --json.');
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
  if (!quiet && !isRefused(outcome)) {
    const { stderr } = context;
    const words = recordedWords(output);
    if (isTerminal(stderr, context))
      stderr.write(`${summaryLines(outcome.tally).join('\n')}\n  recording   ${words}\n`);
    else stderr.write(stamped(Date.now(), `${summaryLine(outcome.tally)}; recording: ${words}`));
  }
  return finish(outcome, bounds);
};

/** Tells whether the file could not even be opened: then there is nothing to sum up. */
const isRefused = ({ ending, tally }: Outcome): boolean =>
  ending.kind === 'failed' && ending.error instanceof RecordingError && tally.connections === 0;

const viewFor = (options: RecordCommand['options'], output: string, context: CliContext): View => {
  if (options.quiet) return noView;
  return isTerminal(context.stderr, context) && !options['no-status']
    ? statusView(context, () => ` · ${recordedWords(output)}`)
    : progressView(context.stderr, () => recordedWords(output));
};
