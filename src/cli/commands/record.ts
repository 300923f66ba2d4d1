import { tradeFeedEvents$ } from '../../index.js';
import { feedLog, LogError } from '../../log/index.js';
import { printable } from '../../protocol/printable.js';
import { connectionOptions } from '../connection.js';
import { endings$ } from '../delivery.js';
import { usageError } from '../errors.js';
import { finish, follow, showSteps } from '../follow.js';
import { ageMs, anyText, connection, count, defineCommand, feedName, option, output, sizeBytes } from '../options.js';
import { statusView, writeSummary } from '../status.js';

export const command = defineCommand({
  argument: feedName,
  usage: '--output <FOLDER> [options] [feed]',
  summary: 'record a feed in a log, with its gaps and events',
  description: `
    Appends to a log, a folder of files with one JSON object per line. jq and DuckDB can read them; replay and serve
    --replay send them again, also while the log grows. Every byte of a payload is preserved. kill -9 loses at most what
    arrived in the last moment, and a power failure the last second.

    Continues an existing log, and records the time in between as a gap. A log that another process writes is refused.
    Ctrl-C ends it with a summary.
  `,
  options: {
    output: option('-o, --output <FOLDER>', 'the log; an existing one is continued', anyText),
    maxSize: option('--max-size <SIZE>', 'remove the oldest files beyond this size of the log: 500MB, 50GB', sizeBytes),
    maxAge: option('--max-age <TIME>', 'remove files that are older: 12h, 7d', ageMs),
    maxFileSize: option('--max-file-size <SIZE>', 'begin another file at this size (default: 16 MiB)', sizeBytes),
    compress: option('--compress', 'compress the files that are complete with gzip'),
    ...connection,
    count,
    ...output,
  },
  examples: [
    ['rx-trade-feed record --output market', 'until Ctrl-C'],
    ['rx-trade-feed record raw --output raw --max-age 7d --compress', 'the last seven days'],
  ],
  run: async (feed, values, context) => {
    const { output: path, maxSize: maxBytes, maxAge: maxAgeMs, maxFileSize: segmentBytes, compress } = values;
    if (path === undefined) throw usageError('Missing folder. Use --output FOLDER.');
    if (path === '-') throw usageError('record writes to a folder. To write to stdout, use listen --json.');
    const events$ = tradeFeedEvents$(feed, await connectionOptions(values, context));
    const view = statusView(values, context, printable(path));
    const recorded$ = events$.pipe(feedLog(path, { maxBytes, maxAgeMs, segmentBytes, compress }).append());
    const { ending, status } = await showSteps(follow(recorded$, feed, values, endings$(context)), view);
    const { hasOpened } = status.life;
    const wasRefused = ending.kind === 'failed' && ending.error instanceof LogError && !hasOpened;
    if (!values.quiet && !wasRefused) writeSummary(context, status, [['log', printable(path)]]);
    return finish(ending, values, hasOpened);
  },
});
