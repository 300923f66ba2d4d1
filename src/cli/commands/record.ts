import { statSync } from 'node:fs';
import { RecordingError, recordTo, tradeFeedEvents$ } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import { connectionOptions } from '../connection.js';
import { usageError } from '../errors.js';
import { endings$, finish, follow, lastStep } from '../follow.js';
import { anyText, connection, count, defineCommand, feedArgument, option, output, sizeBytes } from '../options.js';
import { statusView, writeSummary } from '../view/status.js';
import { bytes, counted } from '../view/text.js';

export const command = defineCommand({
  argument: feedArgument,
  summary: 'record a feed to a file, with its gaps',
  description: `
    Writes frames and gaps as listen --json does, one JSON object per line. jq can read the file; replay and serve
    --replay send it again. Every byte of a payload is preserved. A crash loses at most the last moment.

    Appends to an existing recording, and records the time in between as a gap. It doesn't touch a file that isn't a
    recording, or that another recorder uses. If no frame arrives, no new file remains. Ctrl-C ends it with
    a summary.
  `,
  options: {
    output: option('-o, --output <FILE>', anyText, 'the recording; an existing one is appended to'),
    maxFileSize: option(
      '--max-file-size <SIZE>',
      sizeBytes,
      'continue in FILE.1, FILE.2 and so on when a file is full: 500kB, 100MB, 2GB, 1TB (default: one file)',
    ),
    ...connection,
    count,
    ...output,
  },
  examples: [
    ['rx-trade-feed record --output market.ndjson', 'until Ctrl-C'],
    ['rx-trade-feed record raw --output raw.ndjson --max-file-size 1GB --duration 24h', 'a day, in files of 1 GB'],
  ],
  run: async (feed, values, context) => {
    const { output: path, maxFileSize: maxFileBytes } = values;
    if (path === undefined) throw usageError('Missing file. Use --output FILE.');
    if (path === '-') throw usageError('record writes to a file. To write to stdout, use listen --json.');
    const events$ = tradeFeedEvents$(feed, await connectionOptions(values, context));
    const view = statusView(values, context, () => recordingSize(path));
    const steps$ = events$.pipe(recordTo(path, { maxFileBytes }), follow(feed, values, endings$(context)));
    const { event, status } = await lastStep(steps$, view);
    const { ending } = event;
    const { hasOpened } = status.life;
    const wasRefused = ending.kind === 'failed' && ending.error instanceof RecordingError && !hasOpened;
    if (!values.quiet && !wasRefused) writeSummary(context, status, [['recording', recordingSize(path)]]);
    return finish(ending, values, hasOpened);
  },
});

/** Describes the size of a recording: `1.2 MB in feed.ndjson`, `2.1 GB in 3 files`. Never throws. */
const recordingSize = (path: string): string => {
  const sizes = sizesOf(path);
  // A recording without a line has no file.
  if (sizes.length === 0) return 'nothing was written';
  const total = bytes(sizes.reduce((sum, size) => sum + size, 0));
  return `${total} in ${sizes.length > 1 ? counted(sizes.length, 'file') : printable(path)}`;
};

const sizesOf = (path: string): readonly number[] => {
  const sizes: number[] = [];
  try {
    for (;;) sizes.push(statSync(sizes.length === 0 ? path : `${path}.${sizes.length}`).size);
  } catch {
    // There is no further file. The user learns of any other error from `recordTo`, which has failed with it.
    return sizes;
  }
};
