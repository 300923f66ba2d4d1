import { tap } from 'rxjs';
import type { ListenCommand } from '../arguments/parsed-command.js';
import { commandFeed } from '../cluster/feed.js';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$, finish, outcomeOf } from '../follow/ending.js';
import { follow } from '../follow/follow.js';
import type { Tally } from '../follow/tally.js';
import { droppedRecord, formatFor } from '../output/format.js';
import { type LineWriter, lineWriter } from '../output/line-writer.js';
import { counted } from '../view/units.js';
import { eventLogView, logLine, noView, statusView, type View } from '../view/views.js';
import { summaryLine, summaryLines } from '../view/words.js';

/** How many bytes may wait for a slow reader of stdout. */
const maxWaitingBytes = 64 * 1024 * 1024;
/** How long an interrupted command waits for a slow reader of stdout, in ms. */
const lastFlushMs = 1_000;

/**
 * Writes the frames of a feed to stdout, and shows the status on stderr.
 *
 * @returns the exit code
 * @throws the failure that stopped the feed, or a CliError
 */
export const listen = async ({ feed, options }: ListenCommand, context: CliContext): Promise<number> => {
  const bounds = { count: options.count, durationMs: options.duration };
  const { events$, close } = await commandFeed(feed, options, context);
  const writer = writerFor(options, context);
  const format = formatFor(options, context);
  const view = viewFor(options, context);

  const outcome = await outcomeOf(
    events$.pipe(
      follow(feed, bounds, endings$(context)),
      tap((step) => {
        const line = format(step.event);
        if (line !== undefined) writer.write(line);
        view.show(step);
      }),
    ),
  ).finally(async () => {
    await close();
    view.close();
  });
  await writer.flush(outcome.ending.kind === 'interrupted' ? lastFlushMs : undefined);
  if (!options.quiet) summarize(context, outcome.tally, writer.dropped);
  return finish({ ...outcome, ending: endingOf(context.stdout) ?? outcome.ending }, bounds);
};

type Options = ListenCommand['options'];

const log = ({ stderr }: CliContext, text: string): unknown => stderr.write(logLine(Date.now(), text));

const summarize = (context: CliContext, tally: Tally, dropped: number): void => {
  if (isTerminal(context.stderr, context)) context.stderr.write(`${summaryLines(tally, dropped).join('\n')}\n`);
  else log(context, summaryLine(tally, dropped));
};

const writerFor = ({ json }: Options, context: CliContext): LineWriter =>
  lineWriter(context.stdout, {
    maxBytes: maxWaitingBytes,
    onDropping: () => log(context, 'the reader of stdout is too slow: the oldest lines are dropped'),
    onDropped: (lines) => {
      log(context, `${counted(lines, 'line')} dropped: the reader of stdout was too slow`);
      return json ? `${droppedRecord(lines)}\n` : undefined;
    },
  });

const viewFor = (options: Options, context: CliContext): View => {
  if (options.quiet) return noView;
  return isTerminal(context.stderr, context) && options.status ? statusView(context) : eventLogView(context.stderr);
};
