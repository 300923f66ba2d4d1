import { asyncScheduler, type SchedulerLike } from 'rxjs';

/** Real time in epoch ms with a fraction, on the monotonic clock: a delay of 500 ms is never 499.9. */
export const systemScheduler: SchedulerLike = {
  now: () => performance.timeOrigin + performance.now(),
  schedule: (...args: Parameters<SchedulerLike['schedule']>) => asyncScheduler.schedule(...args),
};
