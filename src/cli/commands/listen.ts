import { tap } from 'rxjs';
import { tradeFeedEvents$ } from '../../index.js';
import type { ListenCommand } from '../arguments/parse.js';
import { connectionOptions } from '../client/connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$ } from '../follow/endings.js';
import { follow } from '../follow/follow.js';
import type { Tally } from '../follow/tally.js';
import { formatFor } from '../output/format.js';
import { type LineWriter, lineWriter } from '../output/line-writer.js';
import { droppedRecord } from '../output/record.js';
import { noticeView } from '../view/notice-view.js';
import { stamped } from '../view/stamped.js';
import { statusView } from '../view/status-view.js';
import { summaryLine, summaryLines } from '../view/tally-words.js';
import { counted } from '../view/units.js';
import { noView, type View } from '../view/view.js';
import { finish, outcomeOf } from './finish.js';

/** How much may wait for a slow reader of stdout. */
const maxWaitingBytes = 64 * 1024 * 1024;
/** How long the end of an interrupted run waits for a slow reader of stdout, in ms. */
const lastFlushMs = 1_000;

/**
 * Writes the frames of a feed to stdout and tells on stderr how it goes, until it ends.
 *
 * @returns the exit code
 * @throws the failure that stopped the feed, or a CliError
 */
export const listen = async ({ feed, options }: ListenCommand, context: CliContext): Promise<number> => {
  const bounds = { count: options.count, durationMs: options.duration };
  const events$ = tradeFeedEvents$(feed, await connectionOptions(options, context));
  const writer = writerFor(options, context);
  const format = formatFor(options, context);
  const view = viewFor(options, context);

  const outcome = await outcomeOf(
    events$.pipe(
      follow(feed, bounds, endings$(context)),
      tap((step) => {
        const line = format(step.happening);
        if (line !== undefined) writer.write(line);
        view.show(step);
      }),
    ),
  ).finally(() => view.close());
  await writer.flush(outcome.ending.kind === 'interrupted' ? lastFlushMs : undefined);
  if (!options.quiet) summarize(context, outcome.tally, writer.dropped);
  return finish({ ...outcome, ending: endingOf(context.stdout) ?? outcome.ending }, bounds);
};

type Options = ListenCommand['options'];

const tell = ({ stderr }: CliContext, text: string): unknown => stderr.write(stamped(Date.now(), text));

const summarize = (context: CliContext, tally: Tally, dropped: number): void => {
  if (isTerminal(context.stderr, context)) context.stderr.write(`${summaryLines(tally, dropped).join('\n')}\n`);
  else tell(context, summaryLine(tally, dropped));
};

const writerFor = ({ json }: Options, context: CliContext): LineWriter =>
  lineWriter(context.stdout, {
    maxBytes: maxWaitingBytes,
    onDropping: () => tell(context, 'the reader of stdout is too slow: the oldest lines are dropped'),
    onDropped: (lines) => {
      tell(context, `${counted(lines, 'line')} dropped: the reader of stdout was too slow`);
      return json ? `${droppedRecord(lines)}\n` : undefined;
    },
  });

const viewFor = (options: Options, context: CliContext): View => {
  if (options.quiet) return noView;
  return isTerminal(context.stderr, context) && !options['no-status']
    ? statusView(context)
    : noticeView(context.stderr);
};
