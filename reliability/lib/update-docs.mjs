// Updates docs/reliability.md and the tables in docs/reliability from reliability/results. Measures nothing.
//
//   node reliability/lib/update-docs.mjs
import { writePages } from '../../bench/lib/pages.mjs';
import { reliabilityPages } from './pages.mjs';

await writePages(reliabilityPages());
