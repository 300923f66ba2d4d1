/** @lane clock */
import { feedLog } from '../../src/log/index.js';
import { isAsGoodAsLive } from './every-store.js';
import { memoryLog } from './memory-log.js';
import { path } from './support.js';

isAsGoodAsLive('a log in a folder', () => [feedLog(path(), { segmentBytes: 60_000, compress: true }), feedLog(path())]);

isAsGoodAsLive('a log in memory', () => {
  const open = memoryLog();
  return [open(), open()];
});
