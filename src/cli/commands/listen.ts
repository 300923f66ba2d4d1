import { replicaFeed } from '../connection.js';
import { endings$, lateAfter } from '../delivery.js';
import { finish, follow, showSteps } from '../follow.js';
import { connection, count, defineCommand, feedName, option, output, replica } from '../options.js';
import { formatFor, LineWriter } from '../output.js';
import { statusView, writeSummary } from '../status.js';
import { counted, type Fact } from '../text.js';

export const command = defineCommand({
  argument: feedName,
  summary: 'write the frames of a feed to stdout, one per line',
  description: `
    Writes each payload on a line. A text payload is unchanged, so if it contains newlines, it takes several lines. A
    binary payload is base64. A terminal shows control characters as symbols, so that a feed can't control it.

    It reads frames as fast as they arrive. Up to 64 MiB may wait for a slow reader of stdout. Then it drops the oldest
    lines, and reports how many on stderr, and with --json also in their place.
  `,
  options: {
    ...connection,
    ...replica,
    count,
    json: option('--json', 'one JSON object per line: frames with metadata, and gaps and reconnects in between'),
    status: output.status,
    quiet: option('-q, --quiet', 'write only errors and dropped frames to stderr'),
  },
  examples: [
    ['rx-trade-feed listen | jq .', 'read frames with jq'],
    ['rx-trade-feed listen raw --duration 10m > frames.ndjson', 'only the payloads, for serve --source'],
    ['rx-trade-feed listen --count 1 --duration 10s -q', 'a health check: exit code 0 if a frame arrived'],
    ['rx-trade-feed listen --json | jq \'select(.type=="gap")\'', 'show only the gaps'],
    [
      'rx-trade-feed listen --cluster nats://127.0.0.1:4222 --account main',
      'a replica: one connection for all of them',
    ],
  ],
  run: async (feed, values, context) => {
    const { events$, close } = await replicaFeed(feed, values, context);
    const writer = new LineWriter(context, values.json);
    const format = formatFor(values, context);
    const view = statusView(values, context);
    const steps$ = follow(events$, feed, values, endings$(context));
    const { ending, status } = await showSteps(steps$, view, (event) => {
      const line = format(event);
      if (line !== undefined) writer.write(line);
    }).finally(close);
    await writer.flush(lateAfter(ending));
    const { dropped } = writer;
    const facts: readonly Fact[] = dropped === 0 ? [] : [['dropped', counted(dropped, 'line')]];
    if (!values.quiet) writeSummary(context, status, facts);
    return finish(ending, values, status.life.hasOpened);
  },
});
