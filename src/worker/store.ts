import type { Frame } from '../protocol/frame.js';
import type { Block } from './block.js';
import type { EventItem, Item, MissedFrames } from './messages.js';
import { createOpenBlock } from './open-block.js';

/** The frames and events that wait for the main thread. The frames are limited to a capacity. */
export interface Store {
  /** Adds a frame. Returns whether the frames before it became a block. */
  addFrame(frame: Frame): boolean;
  /** Adds an event after the frames that are stored. Events are never dropped. */
  addEvent(item: EventItem): void;
  /**
   * Removes and returns the oldest items: events, and blocks of at most `maxBytes` in total, or one larger block. The bytes of the blocks
   * count toward the capacity until `release`.
   */
  take(maxBytes: number): readonly Item[];
  /** Subtracts the bytes of blocks that the main thread has handled. */
  release(bytes: number): void;
  /** Drops the oldest blocks until the capacity is not exceeded. */
  shrink(): void;
  /** Whether the store contains nothing to take. */
  readonly isEmpty: boolean;
}

/** Memory for the frames of one block: a small part of the capacity, because the store drops only complete blocks. */
const blockBytesOf = (capacityBytes: number): number => Math.min(64 * 1024, capacityBytes / 64);

/** The frames up to an event: the dropped frames, the blocks that are stored, and the event. */
interface Section {
  missed: MissedFrames | undefined;
  readonly blocks: Block[];
  end: EventItem | undefined;
}

/**
 * Creates the store of a worker.
 *
 * @param capacityBytes - capacity for blocks, including those that were taken but not released yet, and for the payloads of new frames
 */
export const createStore = (capacityBytes: number): Store => {
  const sections: Section[] = [];
  const filling = createOpenBlock(blockBytesOf(capacityBytes));
  let sealedBytes = 0;

  const newest = (): Section => {
    const section = sections.at(-1);
    if (section !== undefined && section.end === undefined) return section;
    return sections[sections.push({ missed: undefined, blocks: [], end: undefined }) - 1] as Section;
  };

  const addBlock = (block: Block | undefined): boolean => {
    if (block === undefined) return false;
    newest().blocks.push(block);
    sealedBytes += block.bytes.byteLength;
    return true;
  };

  const next = (room: number): Item | undefined => {
    const [section] = sections;
    if (section === undefined) return undefined;
    const { missed, blocks, end } = section;
    section.missed = undefined;
    if (missed !== undefined) return missed;
    const [block] = blocks;
    if (block !== undefined) return block.bytes.byteLength <= room ? blocks.shift() : undefined;
    sections.shift();
    return end;
  };

  return {
    addFrame: (frame) => addBlock(filling.add(frame)),
    addEvent: (item) => {
      addBlock(filling.seal());
      newest().end = item;
    },
    take: (maxBytes) => {
      addBlock(filling.seal());
      const items: Item[] = [];
      let room = Infinity;
      for (let item = next(room); item !== undefined; item = next(room)) {
        items.push(item);
        if (item.type === 'frames') room = Math.min(room, maxBytes) - item.bytes.byteLength;
      }
      return items;
    },
    release: (bytes) => {
      sealedBytes -= bytes;
    },
    shrink: () => {
      while (sealedBytes + filling.usedBytes > capacityBytes) {
        const section = sections.find(({ blocks }) => blocks.length > 0);
        const block = section?.blocks.shift();
        if (section === undefined || block === undefined) return;
        sealedBytes -= block.bytes.byteLength;
        const { from, frames } = section.missed ?? { from: block.from, frames: 0 };
        section.missed = { type: 'missed', from, to: block.to, frames: frames + block.count };
      }
    },
    get isEmpty() {
      return sections.length === 0 && filling.isEmpty;
    },
  };
};
