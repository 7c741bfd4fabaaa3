"""Prints the output of commands: lines, columns, trees and progress bars for users; JSON and CSV for programs."""
