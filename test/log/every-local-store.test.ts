/** @lane clock */
import { feedLog } from '../../src/log/index.js';
import { isAllCases } from '../support/cases.js';
import { isAsGoodAsLive, type OpenTwice } from './every-store.js';
import { memoryLog } from './memory-log.js';
import { path } from './support.js';
import { plans, scriptOf } from './trade-world.js';

const inMemory: OpenTwice = () => {
  const open = memoryLog();
  return [open(), open()];
};

const inFolder: OpenTwice = () => [feedLog(path(), { segmentBytes: 60_000, compress: true }), feedLog(path())];

isAsGoodAsLive('a log in a folder', inFolder, isAllCases ? plans : ['developer']);
isAsGoodAsLive('a log in memory', inMemory, isAllCases ? plans : ['free']);
for (let seed = 1; isAllCases && seed <= 5; seed += 1)
  isAsGoodAsLive(`a log in memory, with outages of the seed ${seed},`, inMemory, plans, scriptOf(seed));
