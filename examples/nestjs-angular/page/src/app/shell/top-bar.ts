import { ChangeDetectionStrategy, Component, computed, inject } from '@angular/core';
import { Shortcuts } from './shortcuts';
import { ShortcutsDialog } from './shortcuts-dialog';
import { Theme } from './theme';
import { Views } from './views';

/** The header of both views: links, theme, keyboard shortcuts, and the buttons that a view adds. */
@Component({
  selector: 'app-top-bar',
  changeDetection: ChangeDetectionStrategy.OnPush,
  imports: [ShortcutsDialog],
  template: `
    <header>
      <h1>Trade feed</h1>
      <nav aria-label="Views">
        @for (link of links; track link.view) {
          <a [href]="'#' + link.view" [attr.aria-current]="views.current() === link.view ? 'page' : null">{{
            link.title
          }}</a>
        }
      </nav>
      <div class="tools">
        <ng-content />
        <button type="button" (click)="theme.next()"><span class="long">Theme: </span>{{ themeWords() }}</button>
        <button type="button" class="square" aria-label="Keyboard shortcuts" (click)="shortcuts.open()">?</button>
      </div>
    </header>
    <app-shortcuts-dialog #shortcuts />
  `,
  styleUrl: './top-bar.css',
})
export class TopBar {
  protected readonly views = inject(Views);
  protected readonly theme = inject(Theme);
  protected readonly links = [
    { view: 'feed', title: 'Feed' },
    { view: 'markets', title: 'Markets' },
  ] as const;
  protected readonly themeWords = computed(
    () => ({ system: 'System', light: 'Light', dark: 'Dark' })[this.theme.choice()],
  );

  constructor() {
    inject(Shortcuts).bind('t', () => this.theme.next());
  }
}
