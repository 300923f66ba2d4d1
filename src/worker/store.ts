import type { Frame } from '../protocol/frame.js';
import type { Block } from './block.js';
import type { Item, MissedFrames, Told } from './messages.js';
import { createOpenBlock } from './open-block.js';

/** What waits to be handed over: frames up to a bound, and what happened around them. */
export interface Store {
  /** Holds a frame. Gives whether what came before it has become a block. */
  put(frame: Frame): boolean;
  /** Holds what happened, in its place between the frames. It is never dropped. */
  tell(told: Told): void;
  /** Takes what came first: blocks of `mostBytes` in all, or a single one, and what happened around them. Taken blocks still count. */
  take(mostBytes: number): readonly Item[];
  /** Counts bytes no longer, of blocks that were taken. */
  release(bytes: number): void;
  /** Drops the oldest blocks, as far as the bound asks for. */
  shrink(): void;
  /** Whether there is nothing to take. */
  readonly isEmpty: boolean;
}

/** A block is made of the views of this much memory, or of a small part of the bound: drops go by blocks. */
const blockBytesOf = (capacityBytes: number): number => Math.min(64 * 1024, capacityBytes / 64);

/** What came up to a happening: how much of it was dropped, and the rest. */
interface Stretch {
  missed: MissedFrames | undefined;
  readonly blocks: Block[];
  end: Told | undefined;
}

/**
 * Makes the store of a worker.
 *
 * @param capacityBytes - how many bytes of frames it may hold, with the table of each block, and with what was taken and is not released
 */
export const createStore = (capacityBytes: number): Store => {
  const stretches: Stretch[] = [];
  const fresh = createOpenBlock(blockBytesOf(capacityBytes));
  let sealedBytes = 0;

  const newest = (): Stretch => {
    const stretch = stretches.at(-1);
    if (stretch !== undefined && stretch.end === undefined) return stretch;
    return stretches[stretches.push({ missed: undefined, blocks: [], end: undefined }) - 1] as Stretch;
  };

  const hold = (block: Block | undefined): boolean => {
    if (block === undefined) return false;
    newest().blocks.push(block);
    sealedBytes += block.bytes.byteLength;
    return true;
  };

  const next = (room: number): Item | undefined => {
    const [stretch] = stretches;
    if (stretch === undefined) return undefined;
    const { missed, blocks, end } = stretch;
    stretch.missed = undefined;
    if (missed !== undefined) return missed;
    const [block] = blocks;
    if (block !== undefined) return block.bytes.byteLength <= room ? blocks.shift() : undefined;
    stretches.shift();
    return end;
  };

  return {
    put: (frame) => hold(fresh.add(frame)),
    tell: (told) => {
      hold(fresh.seal());
      newest().end = told;
    },
    take: (mostBytes) => {
      hold(fresh.seal());
      const items: Item[] = [];
      let room = Infinity;
      for (let item = next(room); item !== undefined; item = next(room)) {
        items.push(item);
        if (item.type === 'frames') room = Math.min(room, mostBytes) - item.bytes.byteLength;
      }
      return items;
    },
    release: (bytes) => {
      sealedBytes -= bytes;
    },
    shrink: () => {
      while (sealedBytes + fresh.heldBytes > capacityBytes) {
        const stretch = stretches.find(({ blocks }) => blocks.length > 0);
        const block = stretch?.blocks.shift();
        if (stretch === undefined || block === undefined) return;
        sealedBytes -= block.bytes.byteLength;
        const { from, frames } = stretch.missed ?? { from: block.from, frames: 0 };
        stretch.missed = { type: 'missed', from, to: block.to, frames: frames + block.count };
      }
    },
    get isEmpty() {
      return stretches.length === 0 && fresh.isEmpty;
    },
  };
};
