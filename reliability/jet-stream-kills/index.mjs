// Kills a NATS server, and kills and stops writers and consumers of a log on it, which are real processes.
//
//   npm run reliability -- jet-stream-kills [--rounds 50] [--seed 1]
import { reportKills } from '../log-kills/kills.mjs';

await reportKills('nats', { name: 'jet-stream-kills', rounds: 50 });
