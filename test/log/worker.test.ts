import { expect, it } from '@jest/globals';
import { lastValueFrom, takeWhile } from 'rxjs';
import { tradeFeedEvents$ } from '../../src/index.js';
import { feedLog, type LogRecord } from '../../src/log/index.js';
import { optionsFor } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, startWire, text } from '../support/wire.js';
import { path, read, texts, textsOf } from './support.js';

it('a log of a feed in a worker has what the service sent, in order, with a gap between two connections', async () => {
  const payloads = texts(0, 500).map(text);
  await using wire = await startWire({
    handshake: [accept(...payloads.slice(0, 300), close(1001)), accept(...payloads.slice(300))],
  });
  const events$ = tradeFeedEvents$('market', optionsFor(wire, { receiveIn: 'worker' }));
  const isLast = (event: unknown) => textsOf([event])[0] === '{"n":499}';
  await lastValueFrom(events$.pipe(takeWhile((event) => !isLast(event), true)).pipe(feedLog(path()).append()));
  const records: readonly LogRecord[] = await read();
  expect(textsOf(records)).toEqual(texts(0, 500));
  const types = records.map(({ type }) => type);
  expect(types.filter((type) => type === 'opened' || type === 'gap')).toEqual(['opened', 'opened', 'gap']);
  expect(textsOf([records[types.indexOf('gap') + 1]])).toEqual(['{"n":300}']);
  const [worker] = workers.started.splice(0);
  await waitFor(() => worker?.threadId === -1);
});
