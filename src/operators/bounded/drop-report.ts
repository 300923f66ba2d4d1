/** What a bounded operator had to drop. See {@link mergeMapBounded} for when it tells. */
export interface DropReport {
  /**
   * `overflow`: the consumer was slower than the feed, and the bounds were reached. `ended`: these were within the bounds and still
   * waited when the subscription ended early, by an error or by unsubscribing.
   */
  readonly reason: 'overflow' | 'ended';
  /** Values dropped since the last report. The reports of a subscription add up to everything that it dropped. */
  readonly dropped: number;
  /** Their bytes. */
  readonly droppedBytes: number;
  /** Values dropped since the subscription began. */
  readonly total: number;
  /** When the first of them was dropped, in epoch ms. */
  readonly from: number;
  /** When the last of them was dropped, in epoch ms. */
  readonly to: number;
}
