import { ChangeDetectionStrategy, Component, inject } from '@angular/core';
import { App } from '../app';
import { MarketsView } from '../markets/markets-view';
import { Views } from './views';

/** Shows one of the two views. The code of the markets is loaded when that view is first shown. */
@Component({
  selector: 'app-root',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [App, MarketsView],
  template: `
    @if (views.current() === 'feed') {
      <app-feed />
    } @else {
      @defer (on immediate) {
        <app-markets-view />
      }
    }
  `,
})
export class Root {
  protected readonly views = inject(Views);
}
