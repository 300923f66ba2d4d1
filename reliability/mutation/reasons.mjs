import { operators } from './reasons/operators.mjs';
import { protocol } from './reasons/protocol.mjs';
import { transport } from './reasons/transport.mjs';

/**
 * Why a mutant that no test notices is left: it changes nothing that can be seen, or nothing that is promised.
 *
 * A reason is `{ why }`, narrowed by any of `code` (stands in the line), `from` (the text before), `to` (the text after) and `mutator`.
 */
export const reasons = Object.entries({ protocol, operators, transport }).flatMap(([folder, files]) =>
  Object.entries(files).flatMap(([name, all]) => all.map((reason) => ({ file: `src/${folder}/${name}`, ...reason }))),
);
