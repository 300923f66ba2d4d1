// @ts-check
/** What came over the wire, by the number that each frame carries. */
export class Truth {
  frames = 0;
  /** Frames that never came: the numbers were left out. */
  missing = 0;
  /** Frames that hold the needle, by the window in which they were read. @type {Map<number, number>} */
  kept = new Map();
  /** When the frames around each hole were read. @type {[number, number][]} */
  holes = [];
  #last = 0;
  #lastAt = 0;

  /**
   * @param {string} needle
   * @param {number} windowMs
   */
  constructor(needle, windowMs) {
    this.needle = Buffer.from(needle);
    this.windowMs = windowMs;
  }

  /** @param {import('rx-trade-feed').Frame} frame */
  see({ data, receivedAt }) {
    const number = numberOf(data);
    if (this.#last > 0 && number !== this.#last + 1) {
      this.missing += number - this.#last - 1;
      this.holes.push([this.#lastAt, receivedAt]);
    }
    this.#last = number;
    this.#lastAt = receivedAt;
    this.frames += 1;
    if (!data.includes(this.needle)) return;
    const start = receivedAt - (receivedAt % this.windowMs);
    this.kept.set(start, (this.kept.get(start) ?? 0) + 1);
  }
}

const start = '{"batch":'.length;

/** @param {Buffer} data `{"batch":12,…` */
const numberOf = (data) => {
  let number = 0;
  for (let n = start; data[n] !== 0x2c; n += 1) number = number * 10 + (data[n] ?? 0) - 0x30;
  return number;
};
