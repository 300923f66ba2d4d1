import { operators } from './reasons/operators.mjs';
import { protocol } from './reasons/protocol.mjs';
import { transport } from './reasons/transport.mjs';

/**
 * Why no test detects a mutant: it has no visible effect, or none that is documented.
 *
 * A reason is `{ why }`. `code` (a part of the line), `from` (the text before), `to` (the text after) and `mutator` restrict the mutants
 * to which it applies.
 */
export const reasons = Object.entries({ protocol, operators, transport }).flatMap(([folder, files]) =>
  Object.entries(files).flatMap(([name, all]) => all.map((reason) => ({ file: `src/${folder}/${name}`, ...reason }))),
);
