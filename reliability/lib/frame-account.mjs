// Accounts for every frame by its number.

/** The account of one subscription: the frames received, the frames missing, and whether a gap reported them. */
export class FrameAccount {
  received = 0;
  /** Numbers that are missing directly after a gap. */
  missedInGaps = 0;
  gaps = 0;
  /** The first ten violations: `{ rule, number }`. */
  violations = [];
  violationCount = 0;
  #first;
  last;
  /** How many frames the gaps since the last frame report; `NaN` if one doesn't say, `undefined` without a gap. */
  #inGaps;

  /** @param {number} [first] the first number that is sent; if the subscription may start later, its first frame decides */
  constructor(first) {
    this.#first = first;
    this.last = first === undefined ? 0 : first - 1;
  }

  /** @param {{ type: string, data?: Buffer, missed?: number }} event of `tradeFeedEvents$` */
  event(event) {
    if (event.type === 'gap') {
      this.gaps += 1;
      this.#inGaps = (this.#inGaps ?? 0) + (event.missed ?? NaN);
    }
    if (event.type === 'frame') this.frames(numberOf(event.data));
  }

  /** Counts a run of frames. */
  frames(from, to = from) {
    if (this.#first === undefined) {
      this.#first = from;
      this.last = from - 1;
      this.#inGaps = undefined;
    }
    const missing = from - this.last - 1;
    if (missing < 0) this.#violate(from === this.last ? 'twice' : 'out of order', from);
    else if (missing > 0 && this.#inGaps === undefined) this.#violate('missing without a gap', from);
    else this.missedInGaps += missing;
    if (this.#inGaps >= 0 && this.#inGaps !== missing)
      this.#violate(`after ${missing} missing frames, where the gaps say ${this.#inGaps}`, from);
    this.#inGaps = undefined;
    this.received += to - from + 1;
    this.last = Math.max(this.last, to);
  }

  /** The next frame may have any number, as that of a new subscription. */
  restart() {
    this.#first = undefined;
  }

  /** Returns whether every number from the first to the last that was sent was received or reported in a gap. */
  isBalanced(sent) {
    return (
      this.violationCount === 0 &&
      this.last === sent &&
      this.received + this.missedInGaps === sent - (this.#first ?? 1) + 1
    );
  }

  #violate(rule, number) {
    this.violationCount += 1;
    if (this.violations.length < 10) this.violations.push({ rule, number });
  }
}

const start = '{"batch":'.length;

/** Reads the number in `{"batch":12,…`. */
const numberOf = (data) => {
  let number = 0;
  for (let n = start; data[n] !== 0x2c; n += 1) number = number * 10 + (data[n] ?? 0) - 0x30;
  return number;
};
