// Kills and stops writers and consumers of a log in a folder, which are real processes.
//
//   npm run reliability -- log-kills [--rounds 100] [--seed 1]
import { reportKills } from './kills.mjs';

await reportKills('folder', { name: 'log-kills', rounds: 100 });
