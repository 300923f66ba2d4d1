// Runs the program of docs/operating.md with SDK 2 and SDK 3 of OpenTelemetry. SDK 3 needs Node 22.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../peers/program.mjs';
import { fencesOf, installLocked, newerNode, patienceMs, root, run, temporaryFolder } from './support.mjs';

const guide = fencesOf('docs/operating.md')[0].code;
const [, table] = /^### The instruments$(.*?)^All of them/ms.exec(
  readFileSync(join(root, 'docs/operating.md'), 'utf8'),
);
const inPrometheus = [...table.matchAll(/\| `(trade_feed_\w+|messaging_\w+)` /g)].map(([, name]) => name);
/** The metrics of a feed without drops, relay and cluster. */
const expected = inPrometheus.filter((name) => !/dropped|relay|cluster/.test(name));

for (const [sdk, node] of [
  ['2', dirname(process.execPath)],
  ['3', newerNode()],
])
  test(`the program of the guide "Metrics and alerts" works with SDK ${sdk} of OpenTelemetry`, async () => {
    const project = temporaryFolder(`rx-trade-feed-opentelemetry-${sdk}-`);
    await installLocked(project, `opentelemetry-${sdk}`);
    const port = await freePort();
    writeFileSync(join(project, 'guide.mjs'), guide.replace('9464', String(port)));
    copyFileSync(join(import.meta.dirname, 'opentelemetry/measure.mjs'), join(project, 'measure.mjs'));
    const options = { cwd: project, timeout: patienceMs };
    const printed = await run(join(node, 'node'), ['measure.mjs', sdk, String(port)], options);
    const { metrics, spans, complaints } = JSON.parse(printed);
    assert.deepEqual(complaints, []);
    assert.deepEqual(
      spans.map(({ name, attributes }) => [name, attributes['trade_feed.attempt']]),
      [
        ['trade_feed.attempt', 1],
        ['trade_feed.attempt', 2],
      ],
    );
    assert.equal(spans[1].attributes['trade_feed.previous.error.type'], 'connection-lost');
    const families = new Set(metrics.map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    assert.ok(expected.length > 6);
    assert.deepEqual(
      expected.filter((name) => !families.has(name)),
      [],
    );
  });
