import type { AnyFrame, Frame } from '../../protocol/frame.js';

/**
 * A frame and its decoded payload.
 *
 * @example
 * ```ts
 * import { Decoded, Frame } from 'rx-trade-feed';
 *
 * const frame = new Frame('market', Buffer.from('{"n":1}'), false, Date.now(), 1);
 * console.log(new Decoded({ n: 1 }, frame).value.n); // 1
 * ```
 */
export class Decoded<A, F extends AnyFrame = Frame> {
  readonly type = 'decoded' as const;
  /** The result of the codec. */
  readonly value: A;
  /** The frame, with the bytes of the payload. */
  readonly frame: F;

  constructor(value: A, frame: F) {
    this.value = value;
    this.frame = frame;
  }
}
