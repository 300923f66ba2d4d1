/** Reports the values that a bounded operator dropped. See {@link mergeMapBounded} for when reports are sent. */
export interface DropReport {
  /**
   * `overflow`: the consumer was slower than the feed, and the bounds were reached. `ended`: the values were within the bounds and still waiting
   * when the subscription ended early, by an error or by unsubscribing.
   */
  readonly reason: 'overflow' | 'ended';
  /** Values dropped since the last report. The sum over all reports of a subscription is the number of its dropped values. */
  readonly dropped: number;
  /** The size of these values. */
  readonly droppedBytes: number;
  /** Values dropped since the subscription began. */
  readonly total: number;
  /** When the first of these values was dropped, in epoch ms. */
  readonly from: number;
  /** When the last of these values was dropped, in epoch ms. */
  readonly to: number;
}
