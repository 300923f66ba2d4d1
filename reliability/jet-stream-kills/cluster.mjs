// The same with three NATS servers that each store the log. The one that leads its stream is killed.
//
//   npm run reliability -- jet-stream-cluster-kills [--rounds 20] [--seed 1]
import { reportKills } from '../log-kills/kills.mjs';

await reportKills('nats-cluster', { name: 'jet-stream-cluster-kills', rounds: 20 });
