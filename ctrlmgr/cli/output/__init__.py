"""Output of commands: lines, columns, trees and progress bars for people, JSON and CSV for programs."""
